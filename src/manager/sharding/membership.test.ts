import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Membership, membershipOf } from "./membership.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const GRACE_MS = 10 * MINUTE;
const START_MS = Date.parse("2026-01-01T00:00:00Z");
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

/** A family whose pods are made ready and unready by the test, looked at whenever something is due. */
function createFamily(count: number) {
  let shards = count;
  let nowMs = START_MS;
  let previous: Membership | undefined;
  let dueMs: number | undefined;
  const ready = new Set<number>();
  const restarting = new Set<number>();
  const history: (readonly number[])[] = [];

  function look(): void {
    const step = membershipOf({
      previous,
      shards,
      exists: (shard) => shard <= shards,
      ready,
      restarting,
      graceMs: GRACE_MS,
      joinsFromMs: 0,
      nowMs,
    });
    if (`${step.active}` !== `${previous?.active}`) history.push(step.active);
    previous = step;
    dueMs = step.againMs === undefined ? undefined : nowMs + step.againMs;
  }

  const family = {
    /** All active shards so far, without repetitions. */
    history,
    active: () => previous?.active,
    losses: () => [...(previous?.losses.keys() ?? [])],
    up(...numbers: number[]) {
      for (const number of numbers) ready.add(number);
      look();
    },
    down(...numbers: number[]) {
      for (const number of numbers) ready.delete(number);
      look();
    },
    evicted(number: number) {
      restarting.add(number);
      family.down(number);
    },
    replaced(number: number) {
      restarting.delete(number);
      family.up(number);
    },
    scale(to: number) {
      shards = to;
      for (const number of ready) if (number > to) ready.delete(number);
      look();
    },
    pass(ms: number) {
      const endMs = nowMs + ms;
      while (dueMs !== undefined && dueMs <= endMs) {
        nowMs = dueMs;
        look();
      }
      nowMs = endMs;
      look();
    },
  };
  family.up(...upTo(count));
  history.length = 0;
  return family;
}

describe("a shard that crashes again and again", () => {
  it("is lost once in an hour, and not again for ten seconds of readiness between two crashes", () => {
    const family = createFamily(8);
    for (let passedMs = 0; passedMs < HOUR; passedMs += 690 * SECOND) {
      family.down(3);
      family.pass(680 * SECOND);
      family.up(3);
      family.pass(10 * SECOND);
    }
    expect(family.history).toEqual([[1, 2, 4, 5, 6, 7, 8]]);
  });

  it("has to be ready for twice as long after each loss", () => {
    const family = createFamily(2);
    const heldMs = [1, 2, 3, 4].map(() => {
      family.down(2);
      family.pass(GRACE_MS);
      expect(family.active()).toEqual([1]);
      family.up(2);
      let waitedMs = 0;
      for (; family.active()?.length === 1; waitedMs += SECOND) family.pass(SECOND);
      return waitedMs;
    });
    expect(heldMs).toEqual([1, 2, 4, 8].map((minutes) => minutes * MINUTE));
  });

  it("does not get its namespaces back because the losses were long ago", () => {
    const family = createFamily(8);
    for (let passedMs = 0; passedMs < 48 * HOUR; passedMs += 701 * SECOND) {
      family.down(3);
      family.pass(691 * SECOND);
      family.up(3);
      family.pass(10 * SECOND);
    }
    expect(family.history).toEqual([[1, 2, 4, 5, 6, 7, 8]]);
    family.down(3);
    family.pass(48 * HOUR);
    expect(family.losses()).toEqual([3]); // it keeps its place in the map of Legacy
    family.up(3);
    family.pass(MINUTE);
    expect(family.active()).toEqual(upTo(8));
  });

  it("is remembered over a scale-down and a scale-up", () => {
    const family = createFamily(8);
    family.down(8);
    family.pass(GRACE_MS);
    family.scale(7);
    family.scale(8);
    family.up(8);
    expect(family.active()).toEqual(upTo(7));
    family.pass(MINUTE);
    expect(family.active()).toEqual(upTo(8));
  });

  it("is lost although all shards together are unready now and then", () => {
    const family = createFamily(3);
    family.down(2);
    for (let round = 0; round < 3; round++) {
      family.pass(4 * MINUTE);
      family.down(1, 3);
      family.pass(SECOND);
      family.up(1, 3);
    }
    expect(family.active()).toEqual([1, 3]);
  });

  it("is not lost by the time for which no shard was ready", () => {
    const family = createFamily(3);
    family.down(1, 2, 3);
    family.pass(HOUR);
    family.up(1);
    family.pass(GRACE_MS - SECOND);
    family.up(2, 3);
    expect(family.history).toEqual([]);
  });

  it("starts with one minute again after six hours without a loss", () => {
    const family = createFamily(2);
    for (const _ of [1, 2, 3]) {
      family.down(2);
      family.pass(GRACE_MS);
      family.up(2);
      family.pass(HOUR);
    }
    family.pass(6 * HOUR);
    family.down(2);
    family.pass(GRACE_MS);
    family.up(2);
    family.pass(MINUTE);
    expect(family.active()).toEqual([1, 2]);
  });

  it("takes over at once if no other shard is ready", () => {
    const family = createFamily(2);
    family.down(2);
    family.pass(GRACE_MS);
    family.up(2);
    family.down(1);
    family.pass(GRACE_MS);
    expect(family.active()).toEqual([2]);
  });
});

describe("shards that become ready one after the other", () => {
  it("join together when the last one is ready", () => {
    const family = createFamily(3);
    family.scale(7);
    for (const shard of [4, 5, 6, 7]) {
      family.pass(90 * SECOND);
      family.up(shard);
    }
    expect(family.history).toEqual([upTo(7)]);
  });

  it("do not wait for one that never becomes ready longer than two minutes after the one before", () => {
    const family = createFamily(3);
    family.scale(6);
    family.pass(30 * SECOND);
    family.up(4);
    family.pass(30 * SECOND);
    family.up(5);
    family.pass(2 * MINUTE - SECOND);
    expect(family.history).toEqual([]);
    family.pass(SECOND);
    expect(family.history).toEqual([upTo(5)]);
  });

  it("do not wait longer than ten minutes for any number of others", () => {
    const family = createFamily(3);
    family.scale(30);
    for (let shard = 4; shard <= 30; shard++) {
      family.up(shard);
      family.pass(100 * SECOND);
    }
    expect(family.history.length).toBeLessThanOrEqual(5);
    expect(family.active()).toEqual(upTo(30));
  });

  it("do not wait for a shard that was lost before", () => {
    const family = createFamily(3);
    family.down(2);
    family.pass(GRACE_MS);
    family.scale(4);
    family.up(4);
    expect(family.active()).toEqual([1, 3, 4]);
  });
});

describe("a shard whose pod the manager has evicted", () => {
  it("keeps its namespaces if its start takes longer than the grace time", () => {
    const family = createFamily(4);
    family.evicted(2);
    family.pass(GRACE_MS + 10 * MINUTE);
    family.replaced(2);
    expect(family.history).toEqual([]);
  });

  it("is lost after half an hour", () => {
    const family = createFamily(4);
    family.evicted(2);
    family.pass(30 * MINUTE - SECOND);
    expect(family.history).toEqual([]);
    family.pass(SECOND);
    expect(family.history).toEqual([[1, 3, 4]]);
  });
});

const disturbance = fc.oneof(
  fc.record({
    kind: fc.constant("flap" as const),
    shard: fc.integer({ min: 1, max: 12 }),
    ms: fc.integer({ max: 40 * MINUTE, min: 0 }),
  }),
  fc.record({
    kind: fc.constant("scale" as const),
    shard: fc.integer({ min: 1, max: 12 }),
    ms: fc.integer({ max: HOUR, min: 0 }),
  }),
  fc.record({ kind: fc.constant("pass" as const), shard: fc.constant(1), ms: fc.integer({ max: HOUR, min: 0 }) }),
);

describe("any sequence of disturbances", () => {
  it("ends with all shards active, at most an hour and a settling time after the last of them", () => {
    fc.assert(
      fc.property(fc.array(disturbance, { maxLength: 20 }), (rows) => {
        const family = createFamily(4);
        let count = 4;
        for (const { kind, shard, ms } of rows) {
          if (kind === "scale") {
            count = shard;
            family.scale(count);
          }
          if (kind === "flap") family.down(shard);
          family.pass(ms);
          family.up(...upTo(count));
        }
        family.pass(HOUR + 10 * MINUTE);
        expect(family.active()).toEqual(upTo(count));
      }),
      { numRuns: 100 },
    );
  });

  it("changes the active shards at most 48 times a day for one shard that flaps", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 1, max: 1800 }), fc.integer({ min: 1, max: 7200 })), { minLength: 30 }),
        (rows) => {
          const family = createFamily(5);
          let passedMs = 0;
          for (const [downSeconds, upSeconds] of rows) {
            family.down(2);
            family.pass(downSeconds * SECOND);
            family.up(2);
            family.pass(upSeconds * SECOND);
            passedMs += (downSeconds + upSeconds) * SECOND;
          }
          const days = Math.max(1, passedMs / (24 * HOUR));
          expect(family.history.length / days).toBeLessThanOrEqual(48);
        },
      ),
      { numRuns: 100 },
    );
  });
});

it("forgets a loss six hours from now at the latest, even if a clock was ahead when it was noted", () => {
  const losses = new Map([[1, { times: 7, lastMs: START_MS + 1_000 * HOUR }]]);
  const none = new Map<number, number>();
  const previous = { active: [1, 2], away: none, noneReadySinceMs: undefined, waiting: none, losses };
  const facts = {
    shards: 2,
    exists: (shard: number) => shard <= 2,
    ready: new Set([1, 2]),
    restarting: new Set<number>(),
    graceMs: GRACE_MS,
    joinsFromMs: 0,
  };
  const seen = membershipOf({ ...facts, previous, nowMs: START_MS });
  expect(seen.losses.get(1)?.lastMs).toBe(START_MS);
  expect(membershipOf({ ...facts, previous: seen, nowMs: START_MS + 6 * HOUR }).losses.size).toBe(0);
});
