// Lives of families: any sequence of scalings, births, deaths, failures and returns, looked at whenever something is
// due. What is promised of each step, of each hour, and of the end, when nothing has happened for a while.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { slotOf } from "./balanced-map.ts";
import { isUneven } from "./evenness.ts";
import { type Placement, placementOf, placer } from "./placement.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const GRACE_SECONDS = 600;
/** The wait after a loss ends within an hour, that for the budget within another one, and each may begin when the other one ends. */
const CALM_HOURS = 4;

type Event =
  | { readonly kind: "scale"; readonly replicas: number }
  | { readonly kind: "down" | "up"; readonly shard: number }
  | { readonly kind: "flap"; readonly shard: number; readonly times: number }
  | { readonly kind: "born" | "died"; readonly count: number }
  | { readonly kind: "passed"; readonly minutes: number };

interface Move {
  readonly atMs: number;
  readonly moved: number;
  readonly hasJoined: boolean;
}

function createLife(placement: "Balanced" | "Legacy", replicas: number, namespaces: number) {
  let names = Array.from({ length: namespaces }, (_, at) => `ns-${at}`);
  let born = namespaces;
  let size = replicas;
  let nowMs = Date.parse("2026-01-01T00:00:00Z");
  let previous: Placement | undefined;
  let dueMs: number | undefined;
  const down = new Set<number>();
  const moves: Move[] = [];

  const existing = () => Array.from({ length: size }, (_, at) => at + 1);
  const ownerOf = (given: Placement) => placer(given);

  function look(): void {
    const step = placementOf({
      previous,
      root: { auto: { everyShardReplicas: 1, graceSeconds: GRACE_SECONDS }, placement, canary: undefined },
      statefulSet: { replicas: size, start: 0 },
      ready: new Set(existing().filter((shard) => !down.has(shard))),
      restarting: new Set(),
      namespaces: names,
      nowMs,
    });
    if (step === undefined) throw new Error("no placement");
    const before = previous;
    previous = step.placement;
    dueMs = step.againMs === undefined ? undefined : nowMs + step.againMs;
    if (before === undefined) return;
    const [from, to] = [ownerOf(before), ownerOf(step.placement)];
    const moved = names.filter((name) => from(name) !== to(name));
    if (moved.length === 0) return;
    const joined = step.placement.active.filter((shard) => !before.active.includes(shard));
    moves.push({ atMs: nowMs, moved: moved.length, hasJoined: joined.length > 0 });
    if (placement === "Balanced") expect(moved.length).toBeLessThanOrEqual(neededMoves(before, step.placement, names));
  }

  /** Time passes, with a look whenever one is due, and every half an hour. */
  function pass(ms: number): void {
    const endMs = nowMs + ms;
    while (nowMs < endMs) {
      nowMs = Math.min(endMs, dueMs ?? endMs, nowMs + 30 * MINUTE);
      look();
    }
  }

  look();
  return {
    moves,
    pass,
    now: () => nowMs,
    placement: () => previous as Placement,
    names: () => names,
    size: () => size,
    recover() {
      down.clear();
      look();
    },
    play(event: Event) {
      switch (event.kind) {
        case "scale":
          size = event.replicas;
          break;
        case "down":
          down.add(event.shard);
          break;
        case "up":
          down.delete(event.shard);
          break;
        case "flap":
          for (let time = 0; time < event.times; time++) {
            down.add(event.shard);
            look();
            pass(11 * MINUTE);
            down.delete(event.shard);
            look();
            pass(10_000);
          }
          break;
        case "born":
          names = [...names, ...Array.from({ length: event.count }, () => `ns-${born++}`)];
          return; // a birth queues no root
        case "died":
          names = names.slice(event.count);
          return;
        case "passed":
          return pass(event.minutes * MINUTE);
        default:
          event satisfies never;
      }
      look();
    },
  };
}

/** The fewest moves to parts that differ by at most one, and one slot for each shard that gains. */
function neededMoves(before: Placement, after: Placement, names: readonly string[]): number {
  const countsOf = (placement: Placement) => {
    const counts = new Map(after.active.map((shard) => [shard, 0]));
    for (const shard of names.map(placer(placement))) if (counts.has(shard)) counts.set(shard, (counts.get(shard) ?? 0) + 1);
    return counts;
  };
  const [kept, got] = [countsOf(before), countsOf(after)];
  const loads = [...kept.values()].sort((a, b) => b - a);
  const [part, larger] = [Math.floor(names.length / loads.length), names.length % loads.length];
  const stay = loads.reduce((sum, load, at) => sum + Math.min(load, part + (at < larger ? 1 : 0)), 0);
  const slots = new Map<number, number>();
  for (const name of names) slots.set(slotOf(name), (slots.get(slotOf(name)) ?? 0) + 1);
  const gainers = after.active.filter((shard) => (got.get(shard) ?? 0) > (kept.get(shard) ?? 0)).length;
  return names.length - stay + gainers * Math.max(0, ...slots.values());
}

function loadsOf({ placement, names }: ReturnType<typeof createLife>): number[] {
  const shards = names().map(placer(placement()));
  return placement().active.map((shard) => shards.filter((each) => each === shard).length);
}

const shard = fc.integer({ min: 1, max: 64 });
const event: fc.Arbitrary<Event> = fc.oneof(
  fc.record({ kind: fc.constant("scale" as const), replicas: fc.integer({ min: 1, max: 64 }) }),
  fc.record({ kind: fc.constantFrom("down" as const, "up" as const), shard }),
  fc.record({ kind: fc.constant("flap" as const), shard, times: fc.integer({ min: 1, max: 8 }) }),
  fc.record({ kind: fc.constantFrom("born" as const, "died" as const), count: fc.integer({ min: 1, max: 60 }) }),
  fc.record({ kind: fc.constant("passed" as const), minutes: fc.integer({ min: 1, max: 90 }) }),
);
const script = {
  placement: fc.constantFrom("Balanced" as const, "Legacy" as const),
  replicas: fc.integer({ min: 1, max: 64 }),
  namespaces: fc.integer({ min: 0, max: 150 }),
  events: fc.array(event, { maxLength: 12 }),
};

describe("any life of a family", () => {
  it("ends with every shard active and even, some hours after all pods are ready, and then nothing moves any more", {
    timeout: 120_000,
  }, () => {
    fc.assert(
      fc.property(fc.record(script), ({ placement, replicas, namespaces, events }) => {
        const life = createLife(placement, replicas, namespaces);
        for (const each of events) life.play(each);
        life.recover();
        life.pass(CALM_HOURS * HOUR);
        expect(life.placement().active).toEqual(Array.from({ length: life.size() }, (_, at) => at + 1));
        if (placement === "Balanced") {
          // Late namespaces: each hour one shard gives its surplus.
          for (let hour = 0; hour < life.size() && isUneven(loadsOf(life)); hour++) life.pass(HOUR);
          expect(isUneven(loadsOf(life))).toBe(false);
        }
        const settled = life.moves.length;
        life.pass(8 * HOUR);
        expect(life.moves.length).toBe(settled);
      }),
      { numRuns: 40 },
    );
  });

  it("never moves more than the budget within an hour by joins, beyond the one that uses it up", () => {
    fc.assert(
      fc.property(fc.record(script), ({ placement, replicas, namespaces, events }) => {
        const life = createLife(placement, replicas, namespaces);
        for (const each of events) life.play(each);
        const least =
          Math.max(1, ...events.map((each) => (each.kind === "born" ? each.count : 0)), life.names().length, namespaces) * 2;
        for (const { atMs } of life.moves) {
          const hour = life.moves.filter((move) => move.hasJoined && move.atMs > atMs - HOUR && move.atMs <= atMs);
          const before = hour.slice(0, -1).reduce((sum, { moved }) => sum + moved, 0);
          expect(before).toBeLessThanOrEqual(least * 2);
          expect(hour.length).toBeLessThanOrEqual(13);
        }
      }),
      { numRuns: 40 },
    );
  });
});

describe("one disturbance", () => {
  it.each([
    ["Legacy", 16],
    ["Balanced", 8],
    ["Balanced", 5],
  ] as const)(
    "of %s with %i shards: a pod that is ready ten seconds of every eleven minutes loses its namespaces once",
    (placement, replicas) => {
      const life = createLife(placement, replicas, 200);
      const owned = life.names().filter((name) => placer(life.placement())(name) === 3).length;
      life.play({ kind: "flap", shard: 3, times: 40 });
      expect(life.moves.map(({ moved }) => moved)).toEqual([owned]);
    },
  );

  it("is one change, of the fewest moves: 3 to 9 shards at once, and back", () => {
    const life = createLife("Balanced", 3, 100);
    life.play({ kind: "scale", replicas: 9 });
    expect(life.moves.map(({ moved }) => moved)).toEqual([66]);
    life.play({ kind: "scale", replicas: 3 });
    expect(life.moves.length).toBe(2);
    expect(Math.max(...loadsOf(life)) - Math.min(...loadsOf(life))).toBeLessThanOrEqual(1);
  });
});
