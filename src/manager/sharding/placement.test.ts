import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BUCKETS } from "../../kube/place.ts";
import { type Placement, type PlacementFacts, placementOf, placer } from "./placement.ts";

const NOW = Date.parse("2026-01-01T00:00:00Z");
const MINUTE = 60_000;
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);
const names = (count: number) => Array.from({ length: count }, (_, index) => `team-${index}`);

interface Change {
  readonly auto?: Partial<PlacementFacts["root"]["auto"]>;
  readonly canary?: number;
  readonly placement?: "Legacy" | "Balanced";
  readonly replicas?: number;
  readonly start?: number;
  readonly ready?: readonly number[];
  readonly previous?: Placement;
  readonly nowMs?: number;
  readonly namespaces?: readonly string[];
}

function facts(change: Change): PlacementFacts {
  const {
    auto = {},
    canary,
    placement,
    replicas,
    start = 0,
    ready = [],
    previous,
    nowMs = NOW,
    namespaces = names(100),
  } = change;
  return {
    previous,
    root: {
      auto: { everyShardReplicas: 2, graceSeconds: 300, ...auto },
      canary: canary === undefined ? undefined : { replicas: canary, percent: 5 },
      placement,
    },
    statefulSet: replicas === undefined ? undefined : { replicas, start },
    ready: new Set(ready),
    restarting: new Set(),
    namespaces,
    nowMs,
  };
}

function place(change: Change) {
  const step = placementOf(facts(change));
  if (step === undefined) throw new Error("no placement");
  return step;
}

/** A placement with these shards active and ready. */
function steady(count: number, change: Change = {}): Placement {
  return place({ replicas: count * 2, ready: upTo(count), ...change }).placement;
}

describe("the number of shards", () => {
  it("is shardingSize if it is set", () => {
    expect(place({ auto: { shardingSize: 3 }, replicas: 99 }).placement.shards).toBe(3);
  });

  it.each([
    { replicas: 0, shards: 1 },
    { replicas: 1, shards: 1 },
    { replicas: 5, shards: 2 },
    { replicas: 6, shards: 3 },
    { replicas: 500, shards: 64 },
  ])("otherwise follows $replicas replicas of which one is the canary's: $shards", ({ replicas, shards }) => {
    expect(place({ canary: 1, replicas }).placement.shards).toBe(shards);
  });

  it("is not known without a StatefulSet, which then has no pods either", () => {
    expect(placementOf(facts({}))).toBeUndefined();
  });

  it("is kept if the StatefulSet is gone", () => {
    const previous = steady(3, { start: 4 });
    expect(place({ previous, ready: [1, 2, 3] }).placement).toEqual(previous);
  });
});

describe("the first placement", () => {
  it("makes all shards active before any pod is ready", () => {
    const { placement, againMs } = place({ replicas: 6 });
    expect(placement.active).toEqual([1, 2, 3]);
    expect(againMs).toBeUndefined();
    expect(place({ previous: placement, replicas: 6, ready: [2], nowMs: NOW + MINUTE }).placement.away).toEqual(
      new Map([1, 3].map((shard) => [shard, NOW + MINUTE])),
    );
  });

  it("notes the first ordinal of the StatefulSet, and follows it", () => {
    const previous = place({ replicas: 6, start: 3 }).placement;
    expect(previous.start).toBe(3);
    expect(place({ previous, replicas: 6, start: 5 }).placement.start).toBe(5);
  });

  it("leaves out the shards for which the StatefulSet is too small", () => {
    expect(place({ auto: { shardingSize: 5 }, canary: 1, replicas: 5 }).placement.active).toEqual([1, 2]);
  });
});

describe("scaling up", () => {
  it("gives a new shard namespaces when one of its pods is ready", () => {
    const previous = steady(2);
    const waiting = place({ previous, replicas: 6, ready: [1, 2] });
    expect(waiting.placement).toEqual({ ...previous, shards: 3 });
    expect(waiting.againMs).toBeUndefined();
    expect(place({ previous: waiting.placement, replicas: 6, ready: [1, 2, 3] }).placement.active).toEqual([1, 2, 3]);
  });
});

describe("scaling down", () => {
  it("takes the namespaces of a shard at once, while its pods may still be ready", () => {
    expect(place({ previous: steady(3), replicas: 4, ready: [1, 2, 3] }).placement.active).toEqual([1, 2]);
    const sized = steady(3, { auto: { shardingSize: 3 } });
    expect(place({ previous: sized, auto: { shardingSize: 3 }, replicas: 4, ready: [1, 2, 3] }).placement).toMatchObject({
      shards: 3,
      active: [1, 2],
    });
  });

  it("keeps a shard of which the StatefulSet still has a pod", () => {
    expect(place({ previous: steady(3), auto: { shardingSize: 3 }, replicas: 5, ready: [1, 2, 3] }).placement.active).toEqual([
      1, 2, 3,
    ]);
  });

  it("to nothing moves nothing", () => {
    expect(place({ previous: steady(3), replicas: 0 }).placement.active).toEqual([1, 2, 3]);
  });
});

describe("a shard without a ready pod", () => {
  const previous = place({ previous: steady(3), replicas: 6, ready: [1, 3] }).placement;
  const passed = (ms: number, ready: readonly number[], graceSeconds?: number) =>
    place({ previous, replicas: 6, ready, nowMs: NOW + ms, auto: graceSeconds === undefined ? {} : { graceSeconds } });

  it("keeps its namespaces for the grace time, and then loses them", () => {
    expect(passed(4 * MINUTE, [1, 3])).toEqual({ placement: previous, againMs: MINUTE });
    expect(passed(5 * MINUTE, [1, 3]).placement).toMatchObject({ shards: 3, active: [1, 3], away: new Map() });
    expect(passed(10_000, [1, 3], 10).placement.active).toEqual([1, 3]);
  });

  it("is no longer away when it is ready again, and the next absence starts anew", () => {
    const back = passed(4 * MINUTE, [1, 2, 3]).placement;
    expect(back.away).toEqual(new Map());
    const again = place({ previous: back, replicas: 6, ready: [1, 3], nowMs: NOW + 5 * MINUTE });
    expect(again).toMatchObject({ placement: { active: [1, 2, 3] }, againMs: 5 * MINUTE });
  });

  it("gets namespaces again when it was ready for a minute after it lost them", () => {
    const lost = passed(5 * MINUTE, [1, 3]).placement;
    const held = place({ previous: lost, replicas: 6, ready: [1, 2, 3], nowMs: NOW + 6 * MINUTE });
    expect([held.placement.active, held.againMs]).toEqual([[1, 3], MINUTE]);
    const back = place({ previous: held.placement, replicas: 6, ready: [1, 2, 3], nowMs: NOW + 7 * MINUTE });
    expect(back.placement.active).toEqual([1, 2, 3]);
  });

  it("stays while no shard is ready, and its time goes on when one is", () => {
    const { placement, againMs } = place({ previous, replicas: 6, nowMs: NOW + MINUTE });
    expect([placement.active, againMs]).toEqual([[1, 2, 3], undefined]);
    const first = place({ previous: placement, replicas: 6, ready: [3], nowMs: NOW + 90 * MINUTE });
    expect([first.placement.active, first.againMs]).toEqual([[1, 2, 3], 4 * MINUTE]);
    const second = place({ previous: first.placement, replicas: 6, ready: [3], nowMs: NOW + 94 * MINUTE });
    expect([second.placement.active, second.againMs]).toEqual([[1, 3], MINUTE]);
    const late = place({ previous: second.placement, replicas: 6, ready: [3], nowMs: NOW + 95 * MINUTE });
    expect(late.placement.active).toEqual([3]);
  });

  it("does not stay longer because a clock was ahead when its absence was noted", () => {
    const ahead = { ...previous, away: new Map([[2, NOW + 60 * MINUTE]]) };
    expect(place({ previous: ahead, replicas: 6, ready: [1, 3] }).againMs).toBe(5 * MINUTE);
  });
});

describe("the owner of a namespace", () => {
  it("goes by the shard-hash with Legacy", () => {
    const ownerOf = placer(steady(3));
    // Their hashes are 5, 25, 18 and 3.
    expect(["default", "kube-system", "foo-01", "test-mysql"].map(ownerOf)).toEqual([1, 3, 2, 1]);
  });

  it("is another shard for about a third of them when a third shard comes with Balanced", () => {
    const namespaces = names(300);
    const before = steady(2, { placement: "Balanced", namespaces });
    const after = steady(3, { placement: "Balanced", namespaces, previous: before });
    const [old, now] = [placer(before), placer(after)];
    const moved = namespaces.filter((name) => old(name) !== now(name));
    expect(moved.length).toBe(100);
    expect(new Set(moved.map(now))).toEqual(new Set([3]));
  });

  it("stays with Balanced when namespaces come and go", () => {
    const before = steady(3, { placement: "Balanced" });
    expect(steady(3, { placement: "Balanced", namespaces: names(7), previous: before }).map).toBe(before.map);
  });
});

describe("any sequence of facts", () => {
  const change = fc.record({
    replicas: fc.integer({ min: 0, max: 20 }),
    start: fc.integer({ min: 0, max: 3 }),
    auto: fc.record(
      { shardingSize: fc.integer({ min: 1, max: 9 }), graceSeconds: fc.constantFrom(0, 60, 300) },
      { requiredKeys: [] },
    ),
    canary: fc.constantFrom(undefined, 1, 3),
    placement: fc.constantFrom("Legacy" as const, "Balanced" as const),
    ready: fc.uniqueArray(fc.integer({ min: 1, max: 12 })),
    passedMs: fc.integer({ min: 0, max: 10 * MINUTE }),
    namespaces: fc.integer({ min: 0, max: 60 }).map(names),
  });

  it("keeps the invariants of a placement", () => {
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 12 }), (changes) => {
        let previous: Placement | undefined;
        let nowMs = NOW;
        for (const { canary, passedMs, ...row } of changes) {
          nowMs += passedMs;
          const asked = { ...row, nowMs, ...(canary === undefined ? {} : { canary }) };
          const { placement, againMs } = place({ ...asked, ...(previous === undefined ? {} : { previous }) });
          const { active, away } = placement;
          expect(active.length).toBeGreaterThan(0);
          expect(active).toEqual([...new Set(active)].sort((a, b) => a - b));
          expect([...away.keys()]).toEqual(active.filter((shard) => !row.ready.includes(shard)));
          expect(row.namespaces.map(placer(placement)).filter((shard) => !active.includes(shard))).toEqual([]);
          const isEvened = previous?.unevenSinceMs !== undefined && nowMs - previous.unevenSinceMs >= 60 * MINUTE;
          if (previous !== undefined && `${previous.active}` === `${active}` && previous.map !== undefined && !isEvened) {
            expect(placement.map).toBe(row.placement === "Balanced" ? previous.map : undefined);
          }
          // The same facts change nothing, until a grace time ends.
          expect(place({ ...asked, previous: placement }).placement).toEqual(placement);
          const owners = ({ placement: then }: ReturnType<typeof place>) => row.namespaces.map(placer(then));
          let step = { placement, againMs };
          let passed = 0;
          // Time alone changes no owner before it is due, and a few looks later it has, or nothing is due any more.
          for (let look = 0; look < 5 && `${step.placement.active}` === `${active}`; look++) {
            const earlierMs = step.againMs === undefined ? 1000 * MINUTE : step.againMs - 1;
            expect(owners(place({ ...asked, previous: step.placement, nowMs: nowMs + passed + earlierMs }))).toEqual(
              owners(step),
            );
            if (step.againMs === undefined) break;
            passed += step.againMs;
            step = place({ ...asked, previous: step.placement, nowMs: nowMs + passed });
          }
          if (step.againMs !== undefined && step.placement.unevenSinceMs === undefined)
            expect(step.placement.active).not.toEqual(active);
          previous = placement;
        }
      }),
      { numRuns: 150 },
    );
  });
});

/** The number of namespaces of each active shard. */
function loads({ active, ...rest }: Placement, namespaces: readonly string[]): number[] {
  const shards = namespaces.map(placer({ active, ...rest }));
  return active.map((shard) => shards.filter((each) => each === shard).length);
}

/** Looks at a family at these times (in minutes), with the same facts. */
function watch(first: Placement, change: Change, minutes: readonly number[]): Placement[] {
  let previous = first;
  return minutes.map((minute) => {
    previous = place({ ...change, previous, nowMs: NOW + minute * MINUTE }).placement;
    return previous;
  });
}

describe("namespaces that come after the division", () => {
  const few = names(3);
  // All of these names have slots of one shard of the first division.
  const first = steady(4, { placement: "Balanced", namespaces: few });
  const late = names(4_000)
    .filter((name) => placer(first)(name) === 2)
    .slice(0, 100);
  const namespaces = [...few, ...late];
  const change: Change = { replicas: 8, ready: upTo(4), placement: "Balanced", namespaces };

  it("are moved when the shards were uneven for an hour: one shard gives others its surplus", () => {
    const [seen, before, after] = watch(first, change, [10, 69, 70]);
    expect(loads(before as Placement, namespaces)).toEqual(loads(first, namespaces));
    expect(seen?.unevenSinceMs).toBe(NOW + 10 * MINUTE);
    expect(Math.max(...loads(after as Placement, namespaces))).toBeLessThanOrEqual(27);
    expect(Math.min(...loads(after as Placement, namespaces))).toBeGreaterThanOrEqual(24);
    expect(after?.moves).toEqual([{ atMs: NOW + 70 * MINUTE, namespaces: expect.any(Number) }]);
  });

  it("never leave the shards uneven for longer than an hour for each shard, and each hour one shard gives", () => {
    const anyNames = fc.uniqueArray(fc.integer({ min: 0, max: 5_000 }), { minLength: 30, maxLength: 300 });
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 16 }), fc.nat(3), anyNames, (shards, sizes, numbers) => {
        const all = numbers.map((number) => `ns-${number}`);
        const start = steady(shards, { placement: "Balanced", namespaces: all.slice(0, sizes) });
        const asked: Change = { replicas: shards * 2, ready: upTo(shards), placement: "Balanced", namespaces: all };
        let previous = start;
        for (let hour = 0; hour <= shards + 1; hour++) {
          const next = place({ ...asked, previous, nowMs: NOW + hour * 60 * MINUTE }).placement;
          const givers = all.filter((name) => placer(previous)(name) !== placer(next)(name)).map(placer(previous));
          expect(new Set(givers).size).toBeLessThanOrEqual(1);
          previous = next;
        }
        expect(previous.unevenSinceMs).toBeUndefined();
      }),
      { numRuns: 100 },
    );
  });
});

describe("the canary of a small percentage", () => {
  const change = (namespaces: readonly string[]): Change => ({ canary: 1, replicas: 5, ready: [1, 2], namespaces });

  it("owns one of ten namespaces, and always the same one", () => {
    const chosen = place(change(names(10))).placement.canaryNamespace;
    expect(names(10)).toContain(chosen);
    const previous = place(change(names(10))).placement;
    expect(place({ ...change(["a-first", ...names(9)]), previous }).placement.canaryNamespace).toBe(
      names(9).includes(chosen ?? "") ? chosen : expect.any(String),
    );
  });

  it("owns no more than its percentage of a hundred, and none of none", () => {
    expect(place(change(names(100))).placement.canaryNamespace).toBeUndefined();
    expect(place(change([])).placement.canaryNamespace).toBeUndefined();
  });

  it("owns another one when that one is deleted", () => {
    const previous = place(change(names(10))).placement;
    const left = names(10).filter((name) => name !== previous.canaryNamespace);
    expect(left).toContain(place({ ...change(left), previous }).placement.canaryNamespace);
  });
});

describe("the cluster-scoped names of ByName", () => {
  it.each(upTo(32))("are even with Balanced for %i shards, and move as few as possible to one more", (count) => {
    const root = (shards: number) => ({
      ...facts({ placement: "Balanced", replicas: shards * 2, ready: upTo(shards) }),
      root: { auto: { everyShardReplicas: 2 }, placement: "Balanced" as const, clusterScoped: "ByName" as const },
    });
    const before = placementOf({ ...root(count), previous: undefined })?.placement as Placement;
    const numbers = (placement: Placement) =>
      placement.active.map((shard) => BUCKETS.filter((bucket) => placer(placement)(bucket) === shard).length);
    expect(Math.max(...numbers(before)) - Math.min(...numbers(before))).toBeLessThanOrEqual(1);
    const after = placementOf({ ...root(count + 1), previous: before })?.placement as Placement;
    expect(Math.max(...numbers(after)) - Math.min(...numbers(after))).toBeLessThanOrEqual(2);
    const moved = BUCKETS.filter((bucket) => placer(before)(bucket) !== placer(after)(bucket)).length;
    expect(moved).toBeLessThanOrEqual(Math.ceil(32 / (count + 1)) + 1);
  });
});

describe("the budget of moves", () => {
  it("counts cluster-scoped names too: with three namespaces the shards do not change sixty times an hour", () => {
    const at = (shards: number, minute: number, previous: Placement | undefined) => {
      const change = {
        ...facts({ placement: "Balanced", replicas: shards * 2, ready: upTo(shards), namespaces: names(3) }),
        previous,
      };
      const root = { ...change.root, clusterScoped: "ByName" as const };
      return placementOf({ ...change, root, nowMs: NOW + minute * MINUTE })?.placement as Placement;
    };
    let previous = at(3, 0, undefined);
    let changes = 0;
    for (let minute = 1; minute < 60; minute++) {
      const next = at(minute % 2 === 0 ? 3 : 9, minute, previous);
      if (`${next.active}` !== `${previous.active}`) changes++;
      previous = next;
    }
    expect(changes).toBeLessThanOrEqual(6);
  });

  const scaled = (shards: number, previous: Placement, minute: number, auto: Change["auto"] = {}) =>
    place({ placement: "Balanced", replicas: shards * 2, ready: upTo(shards), previous, nowMs: NOW + minute * MINUTE, auto });

  it("lets an oscillating size move 200 % of the namespaces in an hour, and then no shard joins until the hour has passed", () => {
    let previous = steady(3, { placement: "Balanced" });
    const sizes = Array.from({ length: 20 }, (_, at) => (at % 2 === 0 ? 9 : 3));
    const active = sizes.map((size, at) => {
      previous = scaled(size, previous, at).placement;
      return previous.active.length;
    });
    expect(active.slice(0, 4)).toEqual([9, 3, 9, 3]);
    expect(active.slice(4)).toEqual(active.slice(4).map(() => 3));
    const waiting = scaled(9, previous, 20);
    expect([waiting.placement.joinsFromMs, waiting.againMs]).toEqual([NOW + 60 * MINUTE, 40 * MINUTE]);
    expect(scaled(9, waiting.placement, 60).placement.active).toEqual(upTo(9));
  });

  it("is larger with maxMovedPercentPerHour", () => {
    let previous = steady(3, { placement: "Balanced" });
    for (let at = 0; at < 9; at++)
      previous = scaled(at % 2 === 0 ? 9 : 3, previous, at, { maxMovedPercentPerHour: 10_000 }).placement;
    expect(previous.active).toEqual(upTo(9));
  });

  it("does not hold back a shard that takes over from a lost one, nor a scale-down", () => {
    const used = [{ atMs: NOW, namespaces: 1_000 }];
    const previous = { ...steady(3, { placement: "Balanced" }), moves: used };
    expect(scaled(2, previous, 1).placement.active).toEqual([1, 2]);
    const lost = place({
      placement: "Balanced",
      replicas: 6,
      ready: [1],
      previous,
      nowMs: NOW + MINUTE,
      auto: { graceSeconds: 0 },
    });
    expect(lost.placement.active).toEqual([1]);
    const over = place({
      placement: "Balanced",
      replicas: 6,
      ready: [2],
      previous: lost.placement,
      nowMs: NOW + 2 * MINUTE,
      auto: { graceSeconds: 0 },
    });
    expect(over.placement.active).toEqual([2]);
  });
});
