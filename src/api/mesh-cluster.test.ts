import { describe, expect, it } from "vitest";
import { fleetCluster } from "../../test/support/mesh-cluster.ts";
import { createCa } from "../base/certificates.ts";
import { MAX_CLUSTER_TABLES } from "../mesh/contract/cluster-tables.ts";
import { MAX_TERMINATE_CLUSTERS, readTerminate, serverPathOf, validateMeshCluster } from "./mesh-cluster.ts";
import { formatProblem } from "./problems.ts";

const problems = (spec: object) => {
  const result = validateMeshCluster(fleetCluster("eu", { servers: ["https://eu.example"], ...spec }));
  return result.ok ? [] : result.problems.map(formatProblem);
};
const base64 = (text: string) => Buffer.from(text).toString("base64");
const CA = base64(createCa({ commonName: "eu", now: Date.UTC(2026, 0, 1) }).certPem);

it.each([
  "https://GW:443//a/./B/",
  "https://gw/a%2Fb",
  "https://gw/a%252fb",
  "https://gw/%2561/b",
  "https://gw/a;x/b",
  "https://gw/a/b%3Bx",
])("a server behind a gateway is known by all spellings of its path: %s", (url) => {
  expect(serverPathOf(url)).toBe("gw:443/a/b");
});

describe("interception: Terminate", () => {
  it("needs the Secret's name, and may have a CA and a name in the certificate", () => {
    const terminate = { kubeconfigSecret: "eu-namespaces", certificateAuthorityData: CA, tlsServerName: "kubernetes.default" };
    expect(problems({ interception: "Terminate", terminate })).toEqual([]);
    expect(problems({ interception: "Terminate", terminate: { kubeconfigSecret: "eu" } })).toEqual([]);
    expect(problems({ interception: "Terminate", terminate: {} })).toEqual([
      expect.stringMatching(/^spec\.terminate\.kubeconfigSecret: /),
    ]);
    expect(problems({ interception: "Terminate" })).toEqual([
      "spec.interception: interception: Terminate needs terminate, with the name of a Secret in kubeconfigSecret",
    ]);
  });

  it("is the only one with the section `terminate`", () => {
    const terminate = { kubeconfigSecret: "eu" };
    for (const interception of ["Tunnel", "None", undefined])
      expect(problems({ interception, terminate })).toEqual(["spec.terminate: only with interception: Terminate"]);
  });

  it("refuses discoveredBy, since all pods find the cluster", () => {
    const discoveredBy = [{ resource: "secrets", name: "eu" }];
    expect(problems({ interception: "Terminate", terminate: { kubeconfigSecret: "eu" }, discoveredBy })).toEqual([
      "spec.discoveredBy: not with interception: Terminate: all pods find the cluster, and see in it only what their subset owns",
    ]);
  });

  it.each([
    ["no base64", "-----BEGIN CERTIFICATE-----"],
    ["no PEM", base64("no certificate")],
    ["a block that is no certificate", base64("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")],
    ["empty", ""],
    ["a key", base64("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")],
  ])("refuses certificateAuthorityData that is %s", (_, certificateAuthorityData) => {
    const terminate = { kubeconfigSecret: "eu", certificateAuthorityData };
    expect(problems({ interception: "Terminate", terminate })).toEqual([
      expect.stringMatching(/^spec\.terminate\.certificateAuthorityData: .*must be the base64 text of PEM certificates/),
    ]);
  });

  it("has a section that is read alone, so that a mistake elsewhere changes nothing of it", () => {
    expect(readTerminate({ kubeconfigSecret: "eu" })).toEqual({ kubeconfigSecret: "eu" });
    expect(readTerminate({ kubeconfigSecret: "EU" })).toBeUndefined();
  });

  it("is possible for as many clusters as routes have tables", () => {
    expect(MAX_TERMINATE_CLUSTERS).toBe(MAX_CLUSTER_TABLES);
  });
});
