import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MAX_MOVES } from "../../api/sharding-status.ts";
import { joinsFrom, type Move, withMove } from "./move-budget.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const NOW = Date.parse("2026-01-01T00:00:00Z");
const move = (minute: number, namespaces: number): Move => ({ atMs: NOW + minute * MINUTE, namespaces });

describe("the budget of moves", () => {
  it.each<[string, readonly Move[], number]>([
    ["at once without moves", [], 0],
    ["at once after few moves", [move(-30, 60), move(-1, 30)], 0],
    ["when the first of two large moves is an hour ago", [move(-50, 60), move(-1, 60)], 10],
    ["when the second one is, if it alone is too large", [move(-50, 60), move(-1, 100)], 59],
    ["when only five small moves are left", Array.from({ length: 14 }, (_, at) => move(at - 14, 1)), 54],
    ["within an hour, if a clock was set back", [move(600, 100)], 60],
  ])("lets a shard join %s", (_, moves, minutes) => {
    expect(joinsFrom(moves, { places: 100, percentPerHour: 100 }, NOW)).toBe(NOW + minutes * MINUTE);
  });

  const ALL = { percentPerHour: 100 };
  const moves = fc.array(fc.tuple(fc.integer({ min: 0, max: 30 }), fc.integer({ min: 0, max: 500 })), { maxLength: 100 });

  it("ends within an hour of the last move, and keeps a bounded list, after any moves", () => {
    fc.assert(
      fc.property(moves, fc.integer({ min: 1, max: 1_000 }), (steps, all) => {
        let nowMs = NOW;
        let list: readonly Move[] = [];
        for (const [minutes, namespaces] of steps) {
          nowMs += minutes * MINUTE;
          list = withMove(list, namespaces, nowMs);
          expect(list.length).toBeLessThanOrEqual(MAX_MOVES);
          expect(joinsFrom(list, { ...ALL, places: all }, nowMs)).toBeLessThanOrEqual(nowMs + HOUR);
        }
        expect(joinsFrom(list, { ...ALL, places: all }, nowMs + HOUR)).toBe(nowMs + HOUR);
      }),
    );
  });

  it("forgets no move of the last hour: shards that join only when they may move less than the budget and one join", () => {
    fc.assert(
      fc.property(moves, fc.integer({ min: 1, max: 1_000 }), (steps, all) => {
        let nowMs = NOW;
        let list: readonly Move[] = [];
        const made: Move[] = [];
        for (const [minutes, namespaces] of steps) {
          nowMs += minutes * MINUTE;
          if (joinsFrom(list, { ...ALL, places: all }, nowMs) > nowMs) continue;
          list = withMove(list, namespaces, nowMs);
          made.push({ atMs: nowMs, namespaces });
          const recent = made.filter(({ atMs }) => nowMs - atMs < HOUR).map((each) => each.namespaces);
          expect(recent.slice(0, -1).reduce((sum, count) => sum + count, 0)).toBeLessThan(all);
          expect(recent.filter((count) => count > 0).length).toBeLessThanOrEqual(6);
        }
      }),
    );
  });

  it("stays the same at each look if a clock was set back, and ends an hour after the first look", () => {
    const seen = withMove([move(600, 100)], 0, NOW);
    expect(withMove(seen, 0, NOW + MINUTE)).toBe(seen);
    expect(joinsFrom(seen, { places: 100, percentPerHour: 100 }, NOW + MINUTE)).toBe(NOW + HOUR);
  });
});
