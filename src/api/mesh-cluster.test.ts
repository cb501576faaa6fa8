import { describe, expect, it } from "vitest";
import { fleetCluster } from "../../test/support/mesh-cluster.ts";
import { threadCpuMs } from "../../test/support/thread-cpu.ts";
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

describe("a server", () => {
  it.each([
    "https://eu.example",
    "https://EU.example:6443/",
    "https://eu_1.example.",
    "https://10.0.0.5:6443",
    "https://[fd00::5]:6443",
    "https://xn--e1afmkfd.example",
    "https://gw/k8s/clusters/c-1",
  ])("may be %s", (url) => {
    expect(problems({ servers: [url] })).toEqual([]);
  });

  it.each([
    ["https://*.example.com", "its host is one name in ASCII"],
    ["https://\u0435u.example", "its host is one name in ASCII"],
    ["https://eu%2eexample", "its host is one name in ASCII"],
    ["http://eu.example", "must be a URL as in a kubeconfig"],
    ["https://eu.example:0", "has no valid host and port"],
    ["https://eu.example:99999", "has no valid host and port"],
    ["https://eu..example", "has no valid host and port"],
    ["https://-eu.example", "has no valid host and port"],
    ["https://eu-.example", "has no valid host and port"],
    [`https://${"a".repeat(64)}.example`, "has no valid host and port"],
  ])("may not be %s", (url, words) => {
    expect(problems({ servers: [url] })).toEqual([expect.stringMatching(/^spec\.servers\[0\]: /)]);
    expect(problems({ servers: [url] }).join()).toContain(words);
  });

  it("may not stand alone instead of the list, and one message says so", () => {
    expect(problems({ servers: "https://eu.example" })).toEqual([
      'spec.servers: "https://eu.example": must be a list, not a string',
    ]);
  });
});

describe("clusterID", () => {
  it.each(["eu-1", "EU_1", "5f3c7a2e-1111-4222-8333-444455556666", "a/b:c"])("may be %s", (clusterID) => {
    expect(problems({ clusterID })).toEqual([]);
  });

  it.each(["", " ", " eu", "eu\n", "e u", "\u0435u", "\u202eeu", "\u0000", "x".repeat(254)])("may not be %j", (clusterID) => {
    expect(problems({ clusterID }).join()).toMatch(/^spec\.clusterID: .*must (have at most 253|be in ASCII, without spaces)/);
  });
});

describe("discoveredBy", () => {
  const GROUP = "multicluster.x-k8s.io";
  it.each([
    { resource: "secrets", name: "eu" },
    { apiGroup: "", resource: "configmaps", name: "eu" },
    { apiGroup: GROUP, resource: "clusterprofiles", name: "eu" },
    { apiGroup: "v2.example.com", resource: "clusters", name: "eu" },
    { apiGroup: "example.com", resource: "secret", name: "system:EU_1" },
  ])("may name %j", (object) => {
    expect(problems({ discoveredBy: [object] })).toEqual([]);
  });

  // Such an object does not exist, so nothing would be hidden.
  it.each([
    [{ resource: "secret", name: "eu" }, 'resource: "secret": is no resource of the core group; did you mean "secrets"?'],
    [
      { resource: "clusterprofiles", name: "eu" },
      'resource: "clusterprofiles": is no resource of the core group: write its group',
    ],
    [{ apiGroup: "v1", resource: "secrets", name: "eu" }, 'apiGroup: "v1": must be an API group without a version'],
    [{ apiGroup: "v1beta2", resource: "clusters", name: "eu" }, 'apiGroup: "v1beta2": must be an API group without a version'],
    [{ apiGroup: "core", resource: "secrets", name: "eu" }, 'apiGroup: "core": must be empty for the core group'],
    [{ resource: "secrets", name: "*" }, 'name: "*": names one object: * is no wildcard'],
    [{ resource: "secrets", name: "eu-*" }, 'name: "eu-*": names one object: * is no wildcard'],
  ])("may not name %j", (object, words) => {
    expect(problems({ discoveredBy: [object] })).toEqual([expect.stringContaining(`spec.discoveredBy[0].${words}`)]);
  });
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

  it("refuses odd certificateAuthorityData without holding up the manager, whose webhook anybody who writes MeshClusters can ask", () => {
    const startedMs = threadCpuMs();
    for (const odd of [`${" ".repeat(16_000)}!`, `${"A".repeat(8_000)}${" ".repeat(8_000)}!`, `${"= ".repeat(8_000)}!`])
      for (let time = 0; time < 10; time++)
        expect(
          problems({ interception: "Terminate", terminate: { kubeconfigSecret: "eu", certificateAuthorityData: odd } }),
        ).toHaveLength(1);
    expect(threadCpuMs() - startedMs).toBeLessThan(1_000);
  });

  it("has a section that is read alone, so that a mistake elsewhere changes nothing of it", () => {
    expect(readTerminate({ kubeconfigSecret: "eu" })).toEqual({ kubeconfigSecret: "eu" });
    expect(readTerminate({ kubeconfigSecret: "EU" })).toBeUndefined();
  });

  it("is possible for as many clusters as routes have tables", () => {
    expect(MAX_TERMINATE_CLUSTERS).toBe(MAX_CLUSTER_TABLES);
  });
});
