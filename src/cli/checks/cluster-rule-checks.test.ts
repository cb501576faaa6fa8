import { expect, it } from "vitest";
import type { FakeObject } from "../../../test/support/cli.ts";
import { cliOfMesh } from "../../../test/support/cli-of-mesh.ts";
import { meshClusterOf } from "../../../test/support/mesh-cluster.ts";
import { sampleShardingRoot } from "../../../test/support/sharding-config.ts";
import { sampleVirtualApp } from "../../../test/support/virtual-app.ts";

const EU = meshClusterOf("eu-1", "eu");
const US = meshClusterOf("us-1", "us");
const ELSEWHERE = { ...EU, metadata: { ...EU.metadata, name: "ap-1", namespace: "other" } };

async function findings(app: object, ...clusters: readonly FakeObject[]) {
  const cli = cliOfMesh({ slices: [app as FakeObject, ...clusters] });
  const { stdout } = await cli.run("check", "-n", "ops", "-o", "json");
  const found: { check: string; object: string; severity: string; message: string }[] = JSON.parse(stdout).findings;
  return found
    .filter(({ check }) => check === "cluster-rules")
    .map(({ severity, object, message }) => `${severity} ${object}: ${message}`);
}
const appWith = (...match: readonly object[]) => ({
  ...sampleVirtualApp({ route: { subRules: [{ name: "canary-eu", match }] } }),
  metadata: { name: "abroad", namespace: "ops" },
});
const rootWith = (clusterSelector: object) => sampleShardingRoot({ clusterSelector });

it("finds a name that no MeshCluster of the namespace has, with the nearest one", async () => {
  expect(await findings(appWith({ clusters: ["eu-1", "eu-11", "ap-1"] }), EU, US, ELSEWHERE)).toEqual([
    'warning VirtualApp ops/abroad: subRules[canary-eu].match[0].clusters: there is no MeshCluster eu-11; did you mean "eu-1"?',
    expect.stringContaining("match[0].clusters: there is no MeshCluster ap-1"),
  ]);
});

it("finds a selector that matches no MeshCluster of the namespace", async () => {
  const selector = { matchLabels: { regionn: "eu" } };
  expect(await findings(appWith({ clusters: ["eu-1"] }, { clusterSelector: selector }), EU, US)).toEqual([
    "warning VirtualApp ops/abroad: subRules[canary-eu].match[1].clusterSelector: matches none of 2 MeshClusters",
  ]);
  expect(await findings(rootWith(selector), EU, US)).toEqual([
    expect.stringMatching(/^warning ShardingConfig ops\/.*: root\.clusterSelector: matches none of 2 MeshClusters$/),
  ]);
  expect(await findings(rootWith({}))).toEqual([expect.stringContaining("matches none of 0 MeshClusters")]);
});

it("finds nothing if each name and each selector has a MeshCluster, or if no rule is about clusters", async () => {
  const selector = { clusterSelector: { matchLabels: { region: "us" } } };
  expect(await findings(appWith({ clusters: ["eu-1"] }, selector), EU, US)).toEqual([]);
  expect(await findings(rootWith({}), EU)).toEqual([]);
  expect(await findings(appWith({ namespaceRegex: "^x" }))).toEqual([]);
  expect(await findings(appWith({ clustersFrom: { placementDecision: "x" } }))).toEqual([]);
});

it("says nothing of an app that is not valid, which has other findings", async () => {
  expect(await findings(appWith({ clusters: ["EU"] }, { clusterSelector: "x" }))).toEqual([]);
  expect(await findings(rootWith({ matchLabels: { "a b": "c" } }))).toEqual([]);
});
