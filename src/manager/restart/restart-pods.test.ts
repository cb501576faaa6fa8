import { expect, it } from "vitest";
import { appPod } from "../../../test/support/pod-facts.ts";
import { snapshot, table } from "../../../test/support/route-table.ts";
import type { RouteTable } from "../../route/table.ts";
import type { ProxyFacts } from "../snapshot-server/proxy-registry.ts";
import { needsRestart, restartPods } from "./restart-pods.ts";

const nothing = table([], {});
const showing: RouteTable = { ...nothing, shown: [{ namespaces: new Set(["lost"]), rules: [] }] };
const POD = appPod("a", "", { namespace: "ops" });

const needs = (acknowledged: RouteTable | undefined, wished: RouteTable, evicted = "") => {
  const enforced = acknowledged === undefined ? undefined : snapshot(acknowledged);
  const facts = { connected: true, leader: false, enforced } as ProxyFacts;
  const plan = { rulesFor: () => snapshot(wished) };
  return restartPods({ pods: [POD], factsOf: () => facts, plan, isEvicted: (uid) => uid === evicted }).map(needsRestart);
};

it("a pod needs a restart when it has acknowledged to show what it lost", () => {
  expect(needs(showing, showing)).toEqual([true]);
  expect(needs(nothing, showing)).toEqual([false]);
  expect(needs(undefined, showing)).toEqual([false]);
});
it("a pod needs none once the edit is undone, acknowledged or not", () => {
  expect(needs(showing, nothing)).toEqual([false]);
});
it("a pod whose eviction was accepted is ending, whether or not the watch has shown it", () => {
  expect(needs(showing, showing, "uid-a")).toEqual([false]);
});
it("of a pod whose proxy never reported nothing is known", () => {
  const [pod] = restartPods({
    pods: [POD],
    factsOf: () => undefined,
    plan: { rulesFor: () => snapshot(showing) },
    isEvicted: () => false,
  });
  expect(pod).toMatchObject({ connected: false, leader: false, shows: false });
});
