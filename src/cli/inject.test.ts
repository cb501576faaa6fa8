import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { startCli } from "../../test/support/cli.ts";
import { SETTINGS } from "../../test/support/injection.ts";
import { appOf } from "../../test/support/source-apps.ts";
import { MeshError } from "../base/errors.ts";
import type { KubeObject } from "../kube/types.ts";
import { injectPod } from "../manager/injection/inject-pod.ts";
import { EXIT } from "./frame/exit.ts";
import { addedParts } from "./inject/added-parts.ts";

const APP = {
  apiVersion: "ctrlmesh.kruise.io/v1alpha1",
  kind: "VirtualApp",
  metadata: { name: "shop", namespace: "ops" },
  spec: { selector: { matchLabels: { app: "shop" } } },
};
const workload = (kind: string, more = "", spec = "") => `apiVersion: apps/v1
kind: ${kind}
metadata: { name: shop }
spec:
  ${more}
  template:
    metadata: { labels: { app: shop } }
    spec:
      ${spec}
      containers: [{ name: manager, image: "shop:1", env: [{ name: A, value: "1" }] }]
`;

interface Manifest extends KubeObject {
  readonly spec: { readonly containers: readonly object[]; readonly volumes?: readonly object[]; readonly hostNetwork?: boolean };
}

const ACCOUNT_DIR = "/var/run/secrets/kubernetes.io/serviceaccount";

function withToken(pod: Manifest, volume: string): Manifest {
  const sources = [{ serviceAccountToken: { path: "token" } }];
  const containers = pod.spec.containers.map((each) => ({ ...each, volumeMounts: [{ name: volume, mountPath: ACCOUNT_DIR }] }));
  const volumes = [...(pod.spec.volumes ?? []), { name: volume, projected: { sources } }];
  return { ...pod, spec: { ...pod.spec, containers, volumes } };
}

/** An API server with the webhook: it gives each pod a volume of a random name, and defaults. */
function cliWithWebhook(file: string) {
  const cli = startCli([]);
  const created: Manifest[] = [];
  cli.files.set("shop.yaml", file);
  cli.creates.call = (object) => {
    created.push(object as Manifest);
    const pod = withToken(object as Manifest, `kube-api-access-${created.length}abcd`);
    const injection = injectPod({ pod, namespace: "ops", apps: [appOf(APP)], settings: SETTINGS });
    if (injection.kind === "refused")
      throw new MeshError("COMMAND_FAILED", `Error from server: admission webhook "a" denied the request: ${injection.message}`);
    const injected = (injection.kind === "changed" ? injection.pod : pod) as Manifest;
    return { ...injected, spec: { ...injected.spec, dnsPolicy: "ClusterFirst" } } as KubeObject;
  };
  return { ...cli, created };
}

describe("inject", () => {
  it.each(["Deployment", "StatefulSet", "DaemonSet"])(
    "shows what the webhook adds to the pod of a %s, and nothing else",
    async (kind) => {
      const cli = cliWithWebhook(workload(kind));
      const { code, stdout } = await cli.run("inject", "-f", "shop.yaml");
      expect(code).toBe(EXIT.ok);
      expect(stdout).toMatch(new RegExp(`^# ${kind} shop: a pod of app shop gets\n`));
      const { metadata, spec } = parse(stdout);
      expect(metadata.labels).toEqual({ "ctrlmesh.kruise.io/virtual-app-injected": "shop" });
      expect(spec.initContainers.map(({ name }: { name: string }) => name)).toContain("ctrlmesh-proxy");
      expect(spec.containers).toHaveLength(1);
      expect(spec.containers[0]).toMatchObject({ name: "manager", env: expect.any(Array) });
      expect(spec.containers[0]).not.toHaveProperty("image");
      expect(spec.containers[0].env.map(({ name }: { name: string }) => name)).not.toContain("A");
      expect(stdout).not.toMatch(/kube-api-access|dnsPolicy/);
    },
  );

  it("asks for the first pod of a StatefulSet with its claims, since the API server checks the mounts", async () => {
    const cli = cliWithWebhook(workload("StatefulSet", "volumeClaimTemplates: [{ metadata: { name: data } }]"));
    await cli.run("inject", "-f", "shop.yaml");
    expect(cli.created[0]).toMatchObject({
      metadata: { namespace: "ops", generateName: "shop-", labels: { "statefulset.kubernetes.io/pod-name": "shop-0" } },
      spec: { volumes: [{ name: "data", persistentVolumeClaim: { claimName: "data-shop-0" } }] },
    });
  });

  it("asks for another name than that of a Pod, which may be there already", async () => {
    const pod = parse(workload("Deployment")).spec.template;
    const cli = cliWithWebhook(JSON.stringify({ ...pod, kind: "Pod", metadata: { ...pod.metadata, name: "shop-0" } }));
    expect((await cli.run("inject", "-f", "shop.yaml")).stdout).toMatch(/^# Pod shop-0: a pod of app shop gets\n/);
    expect(cli.created[0]?.metadata).toMatchObject({ generateName: "shop-0-" });
    expect(cli.created[0]?.metadata).not.toHaveProperty("name");
  });

  it("says that a manifest has its sidecar already", async () => {
    const cli = cliWithWebhook(workload("Deployment"));
    await cli.run("inject", "-f", "shop.yaml");
    const create = cli.creates.call;
    const injected = create?.(cli.created[0] ?? { metadata: {} });
    cli.files.set("shop.yaml", JSON.stringify({ ...injected, kind: "Pod" }));
    cli.creates.call = (object) => object;
    const { code, stdout } = await cli.run("inject", "-f", "shop.yaml");
    expect([code, stdout]).toEqual([
      EXIT.ok,
      "# Pod ops: a pod of app shop, to which nothing is added: it has its sidecar already\n",
    ]);
  });

  it("ends with 2 for a pod that the webhook would refuse, and says why", async () => {
    const { code, stdout } = await cliWithWebhook(workload("Deployment", "", "hostNetwork: true")).run(
      "inject",
      "-f",
      "shop.yaml",
    );
    expect(code).toBe(EXIT.findings);
    expect(stdout).toMatch(
      /^# Deployment shop: would be refused: ctrlmesh: pod ops\/shop-\* of VirtualApp shop cannot be injected: /,
    );
  });

  it("says that no app selects the pod, and gives programs one document", async () => {
    const cli = cliWithWebhook(workload("Deployment").replace("app: shop", "app: other"));
    expect((await cli.run("inject", "-f", "shop.yaml")).stdout).toContain("# Deployment shop: no sidecar");
    const { stdout } = await cliWithWebhook(workload("Deployment")).run("inject", "-f", "shop.yaml", "-o", "json");
    expect(JSON.parse(stdout)).toMatchObject({ kind: "InjectionPreview", items: [{ object: "Deployment shop", app: "shop" }] });
  });

  it("still answers where a pod without labels is refused, and says what is in it then", async () => {
    const cli = cliWithWebhook(workload("Deployment"));
    const create = cli.creates.call;
    cli.creates.call = (object) => {
      if (object.metadata.labels === undefined) throw new MeshError("COMMAND_FAILED", "labels are required");
      return create?.(object) ?? object;
    };
    const { stdout, stderr } = await cli.run("inject", "-f", "shop.yaml");
    expect(stdout).toContain("dnsPolicy");
    expect(stderr).toContain("also has defaults of the API server");
  });

  it("refuses a file without pods, and one that is no manifest", async () => {
    expect((await cliWithWebhook("kind: Service").run("inject", "-f", "shop.yaml")).stderr).toContain("no file has a Pod");
    expect((await cliWithWebhook("kind: Deployment\nspec: 5").run("inject", "-f", "shop.yaml")).stderr).toContain(
      "has a wrong form",
    );
    expect((await startCli([]).run("inject")).code).toBe(EXIT.usage);
  });
});

it.each([
  [{ a: 1 }, { a: 1 }, undefined],
  [{ a: 1, b: { c: [1] } }, { a: 2, b: { c: [1] } }, { a: 2 }],
  [[{ name: "x", v: 1 }], [{ name: "y" }, { name: "x", v: 1 }], [{ name: "y" }]],
  [[{ name: "x", v: 1 }], [{ name: "x", v: 2 }], [{ name: "x", v: 2 }]],
  [["a"], ["a", "b"], ["a", "b"]],
  [undefined, { a: 1 }, { a: 1 }],
])("what %j lacks of %j is %j", (before, after, added) => {
  expect(addedParts(before, after)).toEqual(added);
});
