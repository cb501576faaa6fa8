// A status through any order of edits, acknowledgements, pods that come, go, fall silent or lose their proxy, new managers and time:
// at every look it is what the schema allows, bounded, said in known words, never Converged too early, and the same again when nothing
// has changed, or it would be written for ever.
import fc from "fast-check";
import { expect, it } from "vitest";
import { appStatusSchema } from "../../src/api/app-status.ts";
import { CONDITION_REASONS } from "../../src/manager/status/app-status.ts";
import { nextLookMs } from "../../src/manager/status/status-feed.ts";
import { WAIT_REASONS } from "../../src/manager/status/waits.ts";
import { budget } from "../support/fuzz.ts";
import { appPod } from "../support/pod-facts.ts";
import { canarySpec, createStatusWorld, type StatusWorld } from "../support/status-world.ts";

const NAMES = ["a0", "a1", "a2", "c0", "c1"];
const subsetOf = (name: string) => (name.startsWith("c") ? "canary" : "");
const anyName = fc.constantFrom(...NAMES);
/** Half of the time the specs before come back: an undone edit is the hardest one. */
const owned = fc.oneof(fc.constant(["pilot"]), fc.subarray(["pilot", "extra", "prod"]));
const onLoss = fc.constantFrom("InPlace" as const, "Restart" as const);
const kinds = [
  "ack",
  "ack",
  "ack",
  "remove",
  "add",
  "registration",
  "registration",
  "cut",
  "mend",
  "bare",
  "other-subset",
  "write",
] as const;
const step = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("edit" as const), owned, onLoss, paused: fc.integer({ min: 0, max: 9 }) }),
  },
  { weight: 6, arbitrary: fc.record({ kind: fc.constantFrom(...kinds), name: anyName }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("time" as const), ms: fc.constantFrom(10, 900, 15_000, 70_000, 400_000) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("restart" as const) }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

function apply(world: StatusWorld, made: Step): void {
  if (made.kind === "edit") {
    world.spec = canarySpec(made.owned, { onLoss: made.onLoss, paused: made.paused === 0 });
    world.generation++;
  } else if (made.kind === "time") world.nowMs += made.ms;
  else if (made.kind === "restart") world.forget();
  else applyToPod(world, made.kind, made.name);
}

function applyToPod(world: StatusWorld, kind: string, name: string): void {
  const add = (more: Parameters<typeof appPod>[2]) => void world.pods.set(name, appPod(name, subsetOf(name), more));
  if (kind === "ack") world.ack(name);
  else if (kind === "remove") world.pods.delete(name);
  else if (kind === "add") add({});
  else if (kind === "registration") world.registration(name);
  else if (kind === "cut") world.reports.set(name, { connected: false });
  else if (kind === "mend") world.reports.delete(name);
  else if (kind === "write") world.reports.set(name, { backlog: { heldNamespaces: 2, drainingWrites: 1 } });
  else add({ proxy: kind === "bare" ? "none" : "other-app" });
}

function check(world: StatusWorld): void {
  const status = world.reconcile();
  expect(appStatusSchema.parse(status)).toEqual(status);
  expect(world.reconcile(), "the same again").toEqual(status);
  expect(JSON.stringify(status).length).toBeLessThan(8_000);
  expect(nextLookMs(status, new Date(world.nowMs).toISOString()) ?? 1).toBeGreaterThan(0);
  for (const { type, reason, observedGeneration } of status.conditions ?? []) {
    expect(CONDITION_REASONS[type]).toContain(reason);
    expect(observedGeneration).toBe(world.generation);
  }
  const { handover, lastHandover, namespaces } = status;
  for (const { reason } of handover?.waitingOn ?? []) expect(WAIT_REASONS as readonly string[]).toContain(reason);
  expect(lastHandover?.noWriterSeconds ?? 0).toBeGreaterThanOrEqual(0);
  const isConverged = status.conditions?.find(({ type }) => type === "Converged")?.status === "True";
  if (!isConverged) return;
  expect(handover).toBeUndefined();
  expect(namespaces).toMatchObject({ moving: 0 });
  expect(world.isEnforced()).toBe(true);
}

it("is valid, bounded and calm after any step, and never Converged too early", () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 2, maxLength: 30 }), (steps) => {
      const world = createStatusWorld(
        canarySpec(["pilot"]),
        ["prod", "pilot", "extra"],
        NAMES.map((name) => appPod(name, subsetOf(name))),
      );
      world.settle();
      for (const made of steps) {
        apply(world, made);
        check(world);
      }
    }),
    budget(4_000),
  );
});
