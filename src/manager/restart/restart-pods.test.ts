import { expect, it } from "vitest";
import { appPod } from "../../../test/support/pod-facts.ts";
import { snapshot, subset, table } from "../../../test/support/route-table.ts";
import type { RouteTable } from "../../route/table.ts";
import type { ProxyFacts } from "../facts/proxy-facts.ts";
import { needsRestart, restartPods } from "./restart-pods.ts";

const before = table([subset("canary")], { lost: [] });
const nothing = table([subset("canary")], { lost: [0] });
const ALL = [{ resources: [], visible: true }];
const showing: RouteTable = { ...nothing, retained: [{ namespaces: new Set(["lost"]), rules: ALL }] };
const POD = appPod("a", "", { namespace: "ops" });

const needs = (acknowledged: RouteTable | undefined, next: RouteTable, { evicted = "", desired = next } = {}) => {
  const facts = {
    connected: true,
    leader: false,
    acknowledged: acknowledged === undefined ? undefined : snapshot(acknowledged),
  } as ProxyFacts;
  const plan = { rulesFor: () => snapshot(next), desired };
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
it("a pod needs none while what it gets back by an undo is still fenced for it", () => {
  const backSoon: RouteTable = { ...before, fenced: new Set(["lost"]), retained: showing.retained ?? [] };
  expect(needs(showing, backSoon, { desired: before })).toEqual([false]);
});
it("a pod whose eviction was accepted is ending, whether or not the watch has shown it", () => {
  expect(needs(showing, showing, { evicted: "uid-a" })).toEqual([false]);
});
it("of a pod whose proxy never reported nothing is known", () => {
  const [pod] = restartPods({
    pods: [POD],
    factsOf: () => undefined,
    plan: { rulesFor: () => snapshot(showing), desired: nothing },
    isEvicted: () => false,
  });
  expect(pod).toMatchObject({ connected: false, leader: false, retains: false });
});
