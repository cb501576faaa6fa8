import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { routes } from "../../../test/support/test-routes.ts";
import { silentLogger } from "../../base/log.ts";
import { Registry } from "../../base/metrics.ts";
import type { Snapshot } from "../../route/snapshot.ts";
import { snapshotToWire } from "../../wire/snapshot-codec.ts";
import { diffSnapshots, type SnapshotDelta } from "../../wire/snapshot-delta.ts";
import { createEnforcer } from "./enforcer.ts";
import { createSessionMetrics } from "./session-metrics.ts";
import { createSnapshotIntake } from "./snapshot-intake.ts";

const NAMES = Array.from({ length: 20 }, (_, index) => `n${index}`);
const before = routes(1, { blue: ["a"], rest: NAMES });
const after = routes(2, { blue: ["a", "b"], rest: NAMES });

function deltaBetween(base: Snapshot, next: Snapshot): SnapshotDelta {
  const delta = diffSnapshots(base, next);
  if (delta === undefined) throw new Error("a delta was expected");
  return delta;
}

function setup() {
  const clock = createFakeClock();
  const enforcer = createEnforcer();
  const saved: Snapshot[] = [];
  /** A save that fails may have written. */
  const disk = { fails: false };
  const answered: string[] = [];
  const file = {
    load: async () => saved.at(-1),
    save: async (snapshot: Snapshot) => {
      saved.push(snapshot);
      if (disk.fails) throw new Error("EIO: the folder cannot be synced");
    },
  };
  const pod = { namespace: "shop", name: "shop-0", uid: "uid-1" };
  const metrics = createSessionMetrics(new Registry());
  const signal = new AbortController().signal;
  const intake = createSnapshotIntake({ pod, enforcer, file, metrics, clock, log: silentLogger(), signal });
  const answers = {
    ack: (nonce: number) => void answered.push(`ack ${nonce}`),
    nack: (nonce: number, _: number, problems: readonly string[]) => void answered.push(`nack ${nonce} ${problems.join()}`),
    needsSnapshot: (nonce: number) => void answered.push(`whole ${nonce}`),
  };
  return {
    clock,
    enforcer,
    intake,
    saved,
    disk,
    answered,
    take: (snapshot: Snapshot, nonce: number) => intake.take(snapshotToWire(snapshot, nonce), answers),
    takeDelta: (delta: SnapshotDelta, nonce: number) => intake.takeDelta({ ...delta, nonce }, answers),
  };
}

it("puts a delta in force as the snapshot that it leads to, stores the whole, tells the whole, and acknowledges it", async () => {
  const { clock, enforcer, intake, saved, answered, take, takeDelta } = setup();
  take(before, 1);
  await clock.flush();
  takeDelta(deltaBetween(before, after), 2);
  await clock.flush();
  expect(answered).toEqual(["ack 1", "ack 2"]);
  expect(enforcer.current?.snapshot).toMatchObject({ version: 2, digest: "digest-2", subset: "blue", lockName: "shop-lock" });
  expect(enforcer.current?.view("", "pods").ownershipOf("b")).toBe("own");
  expect(saved.map(({ digest }) => digest)).toEqual(["digest-1", "digest-2"]);
  expect(saved.at(-1)).toBe(intake.held.acknowledged);
  expect(saved.at(-1)?.table.classOf.size).toBe(22);
});

it("asks for the whole, and changes nothing, if the delta's base is not in force, or if there is none", async () => {
  const { clock, enforcer, saved, answered, take, takeDelta } = setup();
  takeDelta(deltaBetween(before, after), 1);
  take(routes(1, { blue: ["a"], rest: NAMES }, { digest: "other" }), 2);
  await clock.flush();
  let changes = 0;
  enforcer.onChange(() => changes++);
  takeDelta(deltaBetween(before, after), 3);
  await clock.flush();
  expect(answered).toEqual(["whole 1", "ack 2", "whole 3"]);
  expect([changes, enforcer.current?.snapshot.digest, saved.length]).toEqual([0, "other", 1]);
});

it("asks for the whole if the delta does not fit a base of the same digest", async () => {
  const { clock, enforcer, answered, take, takeDelta } = setup();
  take(before, 1);
  await clock.flush();
  takeDelta({ ...deltaBetween(before, after), removed: ["never-there"] }, 2);
  takeDelta({ ...deltaBetween(before, after), classes: [{ rules: [9], namespaces: ["b"] }] }, 3);
  expect(answered).toEqual(["ack 1", "whole 2", "whole 3"]);
  expect(enforcer.current?.snapshot.version).toBe(1);
});

it("takes a delta to what is in force and not yet acknowledged, whose ACK then is the only one", async () => {
  const { clock, enforcer, answered, take, takeDelta, intake } = setup();
  const done = enforcer.beginWrite("z");
  take(before, 1);
  await clock.flush();
  takeDelta(deltaBetween(before, after), 2);
  await clock.flush();
  expect([answered, intake.held.inDoubt.map(({ version }) => version)]).toEqual([[], [1, 2]]);
  done();
  await clock.flush();
  expect([answered, intake.held.inDoubt]).toEqual([["ack 2"], []]);
});

it("never goes back to an older version by a delta", async () => {
  const { clock, enforcer, answered, take, takeDelta } = setup();
  take({ ...before, version: 7 }, 1);
  await clock.flush();
  takeDelta(deltaBetween(before, after), 2);
  expect(answered[1]).toMatch(/^nack 2 version: 2 is older than 7/);
  expect(enforcer.current?.snapshot.version).toBe(7);
});

it("stores again what is stored, when what is beside it changes, and nothing that is not acknowledged yet", async () => {
  const { clock, enforcer, intake, saved, take } = setup();
  intake.storeAgain();
  await clock.flush();
  expect(saved).toHaveLength(0);
  take(before, 1);
  await clock.flush();
  intake.storeAgain();
  await clock.flush();
  expect(saved.map(({ version }) => version)).toEqual([1, 1]);
  enforcer.beginWrite("z");
  take(after, 2);
  intake.storeAgain();
  await clock.flush();
  expect(saved).toHaveLength(2);
});

it("stores what it has stored before again, if a save since has failed: nobody knows what is there", async () => {
  const { clock, saved, disk, answered, take } = setup();
  take(before, 1);
  await clock.flush();
  disk.fails = true;
  take(after, 2);
  await clock.flush();
  take({ ...before, version: 3 }, 3);
  await clock.advance(2_000);
  expect(answered).toEqual(["ack 1"]);
  disk.fails = false;
  await clock.advance(2_000);
  expect([answered, saved.at(-1)?.version]).toEqual([["ack 1", "ack 3"], 3]);
});

it("tries again to store what is beside the snapshot, and acknowledges nothing until then", async () => {
  const { clock, intake, saved, disk, answered, take } = setup();
  take(before, 1);
  await clock.flush();
  disk.fails = true;
  intake.storeAgain();
  await clock.flush();
  take({ ...before, version: 2 }, 2);
  await clock.advance(2_000);
  expect(answered).toEqual(["ack 1"]);
  disk.fails = false;
  await clock.advance(2_000);
  expect([answered, saved.at(-1)?.version]).toEqual([["ack 1", "ack 2"], 2]);
});

it("killed with a gain in force that is not stored yet, the next process tells that it may hold more than it knows", async () => {
  const first = setup();
  first.take(before, 1);
  await first.clock.flush();
  first.disk.fails = true;
  first.take(after, 2);
  expect(first.enforcer.current?.view("", "pods").ownershipOf("b")).toBe("own");
  const next = setup();
  next.saved.push(before);
  await next.intake.restore(false);
  expect(next.intake.held).toEqual({ acknowledged: before, inDoubt: [], mayHoldMore: true });
});
