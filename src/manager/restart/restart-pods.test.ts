import { expect, it } from "vitest";
import { appPod } from "../../../test/support/pod-facts.ts";
import { snapshot, subset, table } from "../../../test/support/route-table.ts";
import type { ProxyFacts } from "../../mesh/handover/proxy-facts.ts";
import type { RouteTable } from "../../mesh/ownership/table.ts";
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

it("a pod needs a restart when it has acknowledged the snapshot with its retained namespaces", () => {
  expect(needs(showing, showing)).toEqual([true]);
  expect(needs(nothing, showing)).toEqual([false]);
  expect(needs(undefined, showing)).toEqual([false]);
});
it("a pod needs no restart once the edit is undone, acknowledged or not", () => {
  expect(needs(showing, nothing)).toEqual([false]);
});
it("a pod needs no restart while namespaces that it gains back by an undo are still fenced", () => {
  const backSoon: RouteTable = { ...before, fenced: new Set(["lost"]), retained: showing.retained ?? [] };
  expect(needs(showing, backSoon, { desired: before })).toEqual([false]);
});
it("a pod whose eviction was accepted is ending, whether or not the watch has shown it", () => {
  expect(needs(showing, showing, { evicted: "uid-a" })).toEqual([false]);
});
it("a pod whose proxy never registered has no facts", () => {
  const [pod] = restartPods({
    pods: [POD],
    factsOf: () => undefined,
    plan: { rulesFor: () => snapshot(showing), desired: nothing },
    isEvicted: () => false,
  });
  expect(pod).toMatchObject({ connected: false, leader: false, retains: false });
});
