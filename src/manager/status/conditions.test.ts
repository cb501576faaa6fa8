import { expect, it } from "vitest";
import { appPod } from "../../../test/support/pod-facts.ts";
import { canarySpec, createStatusWorld } from "../../../test/support/status-world.ts";
import { CONDITION_REASONS, CONDITIONS } from "./app-status.ts";

it("a condition has one row, and its Warnings have names of their own", () => {
  for (const names of [
    CONDITIONS.map(({ type }) => type),
    CONDITIONS.flatMap(({ warnings = [] }) => warnings.map(({ reason }) => reason)),
  ])
    expect(names).toEqual([...new Set(names)]);
});

it("Ready has each reason that it takes over from another condition", () => {
  const { Ready: ready } = CONDITION_REASONS;
  const shared = CONDITIONS.flatMap(({ partOfReady }) => partOfReady?.reasons ?? []);
  expect(shared).toContain("LockDenied");
  expect(ready).toEqual(expect.arrayContaining(shared));
});

it("a status has its conditions in the order of the table", () => {
  const world = createStatusWorld(canarySpec(["pilot"]), ["prod", "pilot"], [appPod("a", ""), appPod("c", "canary")]);
  const types = world.settle().conditions?.map(({ type }) => type) ?? [];
  expect(types).toEqual(CONDITIONS.map(({ type }) => type).filter((type) => types.includes(type)));
  expect(types).toEqual(expect.arrayContaining(["Ready", "Accepted", "Converged", "LockPermitted", "TrafficIntercepted"]));
});
