import { describe, expect, it } from "vitest";
import { createRegistry } from "../../base/metrics.ts";
import { addConditionMetrics, type ConditionedKind, MAX_CONDITIONS } from "./condition-metrics.ts";

const condition = (type: string, status: "True" | "False", reason: string) => ({
  type,
  status,
  reason,
  message: "pod a waits",
  lastTransitionTime: "2026-01-01T00:00:00Z",
});
const healthy = [condition("Ready", "True", "InSync"), condition("Accepted", "True", "Valid")];
const objectOf = (name: string, conditions = healthy) => ({ metadata: { namespace: "shop", name }, status: { conditions } });
const listed = (kind: string, ...objects: ReturnType<ConditionedKind["list"]>): ConditionedKind => ({
  kind,
  list: () => objects,
});

function setUp(kinds: () => readonly ConditionedKind[]) {
  const registry = createRegistry("manager", "0");
  addConditionMetrics([registry], kinds);
  return async (name = "ctrlmesh_manager_condition{") =>
    (await registry.metrics()).split("\n").filter((line) => line.startsWith(name));
}

describe("the metric of conditions", () => {
  it("has one series for each condition of each object of any kind", async () => {
    const policy = objectOf("guard", [condition("Synced", "False", "NoEgress")]);
    const lines = setUp(() => [listed("VirtualApp", objectOf("app")), listed("CircuitBreaker", policy)]);
    expect(await lines()).toEqual([
      'ctrlmesh_manager_condition{kind="VirtualApp",namespace="shop",name="app",type="Ready",status="True",reason="InSync"} 1',
      'ctrlmesh_manager_condition{kind="CircuitBreaker",namespace="shop",name="guard",type="Synced",status="False",reason="NoEgress"} 1',
      'ctrlmesh_manager_condition{kind="VirtualApp",namespace="shop",name="app",type="Accepted",status="True",reason="Valid"} 1',
    ]);
  });

  it("follows a status that changes, and ends with the object and with the leadership", async () => {
    let kinds = [listed("VirtualApp", objectOf("app", [condition("Ready", "True", "InSync")]))];
    const lines = setUp(() => kinds);
    expect(await lines()).toHaveLength(1);
    kinds = [listed("VirtualApp", objectOf("app", [condition("Ready", "False", "LockDenied")]))];
    expect(await lines()).toEqual([expect.stringContaining('status="False",reason="LockDenied"} 1')]);
    kinds = [listed("VirtualApp")];
    expect(await lines()).toEqual([]);
    kinds = [];
    expect(await lines()).toEqual([]);
  });

  it("says nothing of an object without a status", async () => {
    expect(await setUp(() => [listed("VirtualApp", { metadata: { namespace: "shop", name: "new" } })])()).toEqual([]);
  });

  it("takes no word from a status that this version does not know", async () => {
    const foreign = [condition("Ready", "False", "x".repeat(1_000)), condition("Haunted", "True", "Ghost")];
    expect(await setUp(() => [listed("VirtualApp", objectOf("app", foreign))])()).toEqual([
      expect.stringContaining('type="Ready",status="False",reason="Other"} 1'),
    ]);
  });

  it("leaves out the last conditions of objects beyond the bound, and says how many", async () => {
    const objects = Array.from({ length: MAX_CONDITIONS - 1 }, (_, at) => objectOf(`app-${at}`));
    const lines = setUp(() => [listed("VirtualApp", ...objects)]);
    const all = await lines("ctrlmesh_manager_condition");
    expect(all.at(-1)).toBe(`ctrlmesh_manager_conditions_left_out ${MAX_CONDITIONS - 2}`);
    const series = all.slice(0, -1);
    expect(series).toHaveLength(MAX_CONDITIONS);
    expect(series.filter((line) => line.includes('type="Ready"'))).toHaveLength(MAX_CONDITIONS - 1);
  });
});
