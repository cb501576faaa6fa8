import { expect, it } from "vitest";
import { appPod, proxyFacts } from "../../../test/support/pod-facts.ts";
import { snapshot, table } from "../../../test/support/route-table.ts";
import { CLUSTER_FREEZE, CLUSTER_OBJECTS, CLUSTER_REQUESTS, CLUSTER_SERVERS, FREEZE } from "../contract/route-type.ts";
import type { ClusterRoute } from "../ownership/clusters.ts";
import type { AppPod } from "./app-pod.ts";
import type { GoneAppPod } from "./claims.ts";
import type { ProxyFacts } from "./proxy-facts.ts";
import { unfrozenPods, unheldFreezes } from "./unfrozen.ts";

const APP = { namespace: "shop", name: "app" };
const FROZEN = [{ namespace: "prod", reason: "restore" }];
const open = snapshot(table([], {}));
const frozen = snapshot(table([], {}), { frozen: [...FROZEN, { namespace: "pilot", reason: "" }] });

function causes(pod: AppPod, facts: Partial<ProxyFacts> | undefined, gone: readonly GoneAppPod[] = []) {
  const factsOf = () => facts && proxyFacts(facts);
  return unfrozenPods({ app: APP, frozen: FROZEN, pods: [pod], factsOf, gone }).map(({ cause }) => cause);
}

it("a pod may write in a frozen namespace unless each of its possible routes freezes it", () => {
  expect(causes(appPod("a"), { acknowledged: frozen })).toEqual([]);
  expect(causes(appPod("a"), { acknowledged: open })).toEqual(["behind"]);
  expect(causes(appPod("a"), { acknowledged: open, outstanding: frozen })).toEqual(["behind"]);
  expect(causes(appPod("a"), { acknowledged: frozen, inDoubt: [open] })).toEqual(["behind"]);
  expect(causes(appPod("a"), { acknowledged: { ...frozen, app: { namespace: "shop", name: "other" } } })).toEqual(["behind"]);
  expect(causes(appPod("a"), { acknowledged: frozen, mayHoldMore: true })).toEqual(["unreported"]);
  expect(causes(appPod("a"), { acknowledged: frozen, capabilities: new Set() })).toEqual(["older-proxy"]);
  expect(causes(appPod("a"), undefined)).toEqual(["unreported"]);
  expect(causes(appPod("a", "", { proxy: "none" }), undefined)).toEqual(["no-proxy"]);
});

it("a pod that has not served, has ended or does not run yet writes nowhere", () => {
  expect(causes(appPod("a"), {})).toEqual([]);
  expect(causes(appPod("a", "", { ended: true, running: false }), { acknowledged: open, connected: false })).toEqual([]);
  expect(causes(appPod("a", "", { running: false }), undefined)).toEqual([]);
  expect(causes(appPod("a", "", { proxy: "none", running: false }), undefined)).toEqual([]);
});

it("a removed pod counts by the last facts about its proxy", () => {
  const pod = appPod("gone", "", { ended: true, running: false });
  const now = { acknowledged: frozen };
  expect(causes(appPod("a"), now, [{ pod, facts: proxyFacts({ acknowledged: open, connected: false }) }])).toEqual(["pod-gone"]);
  expect(causes(appPod("a"), now, [{ pod, facts: proxyFacts({ acknowledged: frozen, connected: false }) }])).toEqual([]);
  expect(causes(appPod("a"), now, ["unknown"])).toEqual(["just-listed"]);
});

it("without a freeze no pod is looked at", () => {
  const pods = [appPod("a", "", { proxy: "none" })];
  expect(unfrozenPods({ app: APP, frozen: undefined, pods, factsOf: () => undefined, gone: ["unknown"] })).toEqual([]);
});

const eu: ClusterRoute = {
  name: "eu",
  servers: ["eu:443"],
  drainMs: 1,
  owner: "",
  isFenced: true,
  upstream: { url: "https://eu" },
};
const INSIDE = [{ namespace: "eu/prod", reason: "restore" }];
const FULL = new Set([FREEZE, CLUSTER_OBJECTS, CLUSTER_SERVERS, CLUSTER_REQUESTS, CLUSTER_FREEZE]);
const without = (...names: string[]) => FULL.difference(new Set(names));
const openInside = snapshot(table([], {}), { clusters: [eu] });
const frozenInside = snapshot(table([], {}), { clusters: [eu], frozen: INSIDE });

function causesInside(facts: Partial<ProxyFacts>, more: Partial<Parameters<typeof unfrozenPods>[0]> = {}) {
  const factsOf = () => proxyFacts({ capabilities: FULL, ...facts });
  const found = unfrozenPods({ app: APP, frozen: INSIDE, clusters: [eu], pods: [appPod("a")], factsOf, gone: [], ...more });
  return found.map(({ cause, cluster }) => `${cluster} ${cause}`);
}

it("a pod may write in a frozen namespace of a cluster unless its routes freeze it there and close the servers to it", () => {
  expect(causesInside({ acknowledged: frozenInside })).toEqual([]);
  expect(causesInside({ acknowledged: openInside })).toEqual(["eu behind"]);
  expect(causesInside({ acknowledged: openInside, outstanding: frozenInside })).toEqual(["eu behind"]);
  const atHome = snapshot(table([], {}), { clusters: [eu], frozen: [{ namespace: "prod", reason: "x" }] });
  expect(causesInside({ acknowledged: atHome })).toEqual(["eu behind"]);
  const elsewhere = { ...frozenInside, frozen: [{ namespace: "us/prod", reason: "x" }] };
  expect(causesInside({ acknowledged: elsewhere })).toEqual(["eu behind"]);
  // Its routes let it connect to the servers by itself.
  expect(causesInside({ acknowledged: { ...frozenInside, clusters: undefined } })).toEqual(["eu behind"]);
  const { upstream: _, isFenced: __, ...tunnel } = eu;
  expect(causesInside({ acknowledged: { ...frozenInside, clusters: [tunnel] } })).toEqual(["eu behind"]);
  const fewer = { ...eu, servers: ["old:443"] };
  expect(causesInside({ acknowledged: { ...frozenInside, clusters: [fewer] } })).toEqual(["eu behind"]);
});

it("a proxy of an earlier version, or one that does not see what is sent to clusters, does not freeze them", () => {
  const acknowledged = frozenInside;
  expect(causesInside({ acknowledged, capabilities: without(CLUSTER_FREEZE) })).toEqual(["eu older-proxy"]);
  expect(causesInside({ acknowledged, capabilities: new Set([FREEZE, CLUSTER_OBJECTS]) })).toEqual(["eu older-proxy"]);
  expect(causesInside({ acknowledged, capabilities: new Set([CLUSTER_OBJECTS]) })).toEqual(["eu older-proxy"]);
  const both = [...INSIDE, { namespace: "prod", reason: "x" }];
  const atHome = snapshot(table([], {}), { frozen: both, clusters: [eu] });
  const factsOf = () => proxyFacts({ acknowledged: atHome, capabilities: new Set([FREEZE]) });
  expect(unfrozenPods({ app: APP, frozen: both, clusters: [eu], pods: [appPod("a")], factsOf, gone: [] })).toEqual([
    { podName: "a", cause: "older-proxy", cluster: "eu" },
  ]);
});

it("a pod that is gone counts for a cluster as long as its last requests may run there", () => {
  const gone = [
    { pod: appPod("gone", "", { ended: true }), facts: proxyFacts({ acknowledged: openInside, capabilities: FULL }) },
  ];
  expect(causesInside({ acknowledged: frozenInside }, { gone })).toEqual([]);
  expect(causesInside({ acknowledged: frozenInside }, { goneAbroad: gone })).toEqual(["eu pod-gone"]);
  expect(causesInside({ acknowledged: frozenInside }, { goneAbroad: ["unknown"] })).toEqual(["eu just-listed"]);
});

it("a freeze stops nobody in a cluster that the proxies do not serve", () => {
  const { upstream: _, isFenced: __, ...tunnel } = eu;
  const heldBy = (clusters: readonly ClusterRoute[] | undefined) => unheldFreezes([...FROZEN, ...INSIDE], clusters);
  const place = { cluster: "eu", namespace: "prod" };
  expect(heldBy([eu])).toEqual([]);
  expect(heldBy([tunnel])).toEqual([{ ...place, interception: "Tunnel" }]);
  expect(heldBy([{ ...tunnel, isOpen: true }])).toEqual([{ ...place, interception: "None" }]);
  expect(heldBy([{ ...eu, name: "us" }])).toEqual([{ ...place, interception: undefined }]);
  expect(heldBy(undefined)).toEqual([{ ...place, interception: undefined }]);
  expect(causesInside({ acknowledged: openInside }, { clusters: [tunnel] })).toEqual([]);
});
