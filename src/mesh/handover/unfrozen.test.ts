import { expect, it } from "vitest";
import { appPod, proxyFacts } from "../../../test/support/pod-facts.ts";
import { snapshot, table } from "../../../test/support/route-table.ts";
import type { AppPod } from "./app-pod.ts";
import type { GoneAppPod } from "./claims.ts";
import type { ProxyFacts } from "./proxy-facts.ts";
import { unfrozenPods } from "./unfrozen.ts";

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
