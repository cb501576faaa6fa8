import { describe, expect, it } from "vitest";
import { meshClusterOf } from "../../../../test/support/mesh-cluster.ts";
import { CALLER } from "../../../../test/support/review-caller.ts";
import { checkedMeshClusters } from "./mesh-clusters.ts";
import { createValidateWebhook } from "./validate-webhook.ts";

const resource = { group: "ctrlmesh.kruise.io", version: "v1alpha1", resource: "meshclusters" };
const review = createValidateWebhook([checkedMeshClusters]);
const cluster = (spec: object = {}) => meshClusterOf("eu-1", "eu", spec);
const ask = (object: object, oldObject?: object) => {
  const operation = oldObject === undefined ? "CREATE" : "UPDATE";
  return review({ uid: "u", resource, operation, namespace: "ops", name: "eu-1", object, oldObject }, CALLER);
};
const bad = cluster({ servers: ["https://eu-1:99999"], terminate: {} });

describe("the validating webhook of MeshClusters", () => {
  it("refuses one with all its problems at once, also those that the CRD cannot find", async () => {
    expect(await ask(bad)).toMatchObject({
      allowed: false,
      reason: "Invalid",
      message: expect.stringMatching(
        /^MeshCluster eu-1 has 3 problems: spec\.servers\[0\]: "https:\/\/eu-1:99999": has no valid host and port; spec\.terminate/,
      ),
    });
  });

  it("names the field that is near an unknown one", async () => {
    expect(await ask(cluster({ drainSecond: 5 }))).toMatchObject({
      message: expect.stringContaining('spec.drainSecond: unknown field; did you mean "drainSeconds"?'),
    });
  });

  it("allows a valid one", async () => {
    expect(await ask(cluster())).toEqual({ allowed: true, warnings: [] });
    expect(await ask(cluster({ interception: "None", discoveredBy: [{ resource: "secrets", name: "eu-1" }] }))).toEqual({
      allowed: true,
      warnings: [],
    });
  });

  it("allows an edit of an invalid one that adds no problem, with a warning for each that is left", async () => {
    expect(await ask(cluster({ servers: ["https://eu-1:99999"] }), bad)).toEqual({
      allowed: true,
      warnings: ['not corrected yet: spec.servers[0]: "https://eu-1:99999": has no valid host and port'],
    });
    expect(await ask({ ...bad, spec: { ...bad.spec, drainSeconds: 0 } }, bad)).toMatchObject({
      allowed: false,
      message: expect.stringContaining("has 1 problem: spec.drainSeconds"),
    });
  });

  it.each([{ interception: "None" }, { interception: "None", discoveredBy: [] }])(
    "warns of interception None without an object to hide: %j",
    async (spec) => {
      expect(await ask(cluster(spec))).toEqual({
        allowed: true,
        warnings: ["spec.discoveredBy is empty, so with interception: None every pod finds and reaches this cluster"],
      });
    },
  );

  it("warns of a server that is the sidecar itself, as in a derived kubeconfig", async () => {
    const servers = ["https://eu-1.example", "https://127.0.0.1:5443/_ctrlmesh/clusters/eu-1"];
    expect(await ask(cluster({ servers }))).toEqual({
      allowed: true,
      warnings: ["spec.servers[1] leads to the sidecar: write the URL of the cluster itself"],
    });
  });

  it.each(["kubernetes.default", "kubernetes.default.svc", "Kubernetes.Default.svc.cluster.local:443"])(
    "warns of a server that is the home cluster: %s",
    async (host) => {
      expect(await ask(cluster({ servers: [`https://${host}`] }))).toEqual({
        allowed: true,
        warnings: [
          "spec.servers[0] is the home cluster, which the app's other rules divide: its namespaces could have two writers",
        ],
      });
      expect(await ask(cluster({ servers: [`https://eu.${host}`] }))).toEqual({ allowed: true, warnings: [] });
    },
  );
});
