import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { samplePlacement } from "../../../test/support/sharding-config.ts";
import { formatProblem } from "../../api/problems.ts";
import { MAX_MOVES } from "../../api/sharding-status.ts";
import { SLOTS } from "./balanced-map.ts";
import type { Placement } from "./placement.ts";
import { formatPlacement, placementInputs, readPlacement, storedPlacement } from "./stored-placement.ts";

const NOW = Date.parse("2026-01-31T12:00:00.5Z");
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);
const legacy = samplePlacement({ start: 3, shards: 4, active: [1, 3], away: new Map([[3, NOW]]) });
const STORED = { start: 3, shards: 4, active: [1, 3], away: { "3": "2026-01-31T12:00:00.500Z" } };
const AT = "2026-01-31T12:00:00Z";

/** The value as the API server gives it back: without undefined fields. */
const stored = (placement: Placement) => JSON.parse(JSON.stringify(formatPlacement(placement)));

function problemsOf(value: unknown): string[] {
  const result = readPlacement(value);
  return result.ok ? [] : result.problems.map(formatProblem);
}

describe("the stored placement", () => {
  it("has fields that people can read", () => {
    expect(stored(legacy)).toEqual(STORED);
    expect(readPlacement(STORED)).toEqual({ ok: true, value: legacy });
  });

  it("is the same for equal placements", () => {
    const away = (...rows: (readonly [number, number])[]): Placement => ({ ...legacy, active: [4, 9], away: new Map(rows) });
    expect(JSON.stringify(stored(away([4, NOW], [9, NOW])))).toBe(JSON.stringify(stored(away([9, NOW], [4, NOW]))));
  });

  it("gives back every placement, also the largest", () => {
    const placement = fc
      .record({
        active: fc.uniqueArray(fc.integer({ min: 1, max: 64 }), { minLength: 1 }),
        seed: fc.nat(),
        isMapped: fc.boolean(),
      })
      .map(({ active: list, seed, isMapped }): Placement => {
        const active = [...list].sort((a, b) => a - b);
        const mapOf = (length: number) => Uint8Array.from({ length }, (_, slot) => active[(slot * seed) % active.length] ?? 0);
        const waiting = upTo(64).filter((shard) => !active.includes(shard) && shard % 3 === 0);
        return {
          start: seed % 9,
          shards: active.length,
          active,
          away: new Map(active.filter((shard) => (shard + seed) % 2 === 0).map((shard) => [shard, NOW + shard])),
          noneReadySinceMs: seed % 5 === 0 ? NOW : undefined,
          waiting: new Map(waiting.map((shard) => [shard, NOW])),
          losses: new Map(active.slice(seed % 3).map((shard) => [shard, { times: 1 + (seed % 7), lastMs: NOW - shard }])),
          joinsFromMs: seed % 4 === 0 ? NOW : undefined,
          moves: upTo(seed % MAX_MOVES).map((namespaces) => ({ atMs: NOW + namespaces, namespaces })),
          unevenSinceMs: seed % 6 === 0 ? NOW : undefined,
          canaryNamespace: seed % 7 === 0 ? "team-7" : undefined,
          map: isMapped ? mapOf(SLOTS) : undefined,
          clusterMap: isMapped && seed % 2 === 0 ? mapOf(32) : undefined,
        };
      });
    fc.assert(
      fc.property(placement, (each) => {
        expect(readPlacement(stored(each))).toEqual({ ok: true, value: each });
      }),
    );
    const times = new Map(upTo(64).map((shard) => [shard, NOW]));
    const largest = {
      ...legacy,
      active: upTo(64),
      away: times,
      losses: new Map(upTo(64).map((shard) => [shard, { times: 2_147_483_647, lastMs: NOW }])),
      moves: upTo(MAX_MOVES).map((namespaces) => ({ atMs: NOW, namespaces })),
      map: new Uint8Array(SLOTS).fill(64),
      clusterMap: new Uint8Array(32).fill(64),
    };
    expect(readPlacement(stored(largest)).ok).toBe(true);
    expect(JSON.stringify(stored(largest)).length).toBeLessThan(12_000);
  });

  it("may have fields of a later version", () => {
    expect(readPlacement({ ...STORED, later: 1 })).toEqual({ ok: true, value: legacy });
  });

  it.each<[string, unknown, string[]]>([
    ["a list", [], ["must be an object, not a list"]],
    ["nothing", {}, ["start: required", "shards: required"]],
    ["no active shard", { ...STORED, active: [], away: {} }, ["active: must not be empty"]],
    ["shards out of order", { ...STORED, active: [3, 1] }, ["active: must be ascending"]],
    ["a shard too many", { ...STORED, active: [1, 65] }, ["active[1]: 65: must be at most 64"]],
    ["an inactive shard that is away", { ...STORED, active: [1] }, ["away: must name active shards only"]],
    ["an active shard that waits", { ...STORED, waiting: { 1: AT } }, ["waiting: must name no active shards"]],
    [
      "a shard without a number",
      { ...STORED, losses: { x: { times: 1, last: AT } } },
      ["must name shards by their numbers, from 1 to 64"],
    ],
    ["a short map", { ...STORED, map: "AQE=" }, ["map: must have 1024 bytes"]],
    [
      "a map of an inactive shard",
      stored({ ...legacy, map: new Uint8Array(SLOTS).fill(2) }),
      ["map: must name active shards only"],
    ],
  ])("is refused with the reason: %s", (_, value, problems) => {
    expect(problemsOf(value)).toEqual(problems);
  });

  it("is refused and never throws, whatever it is", () => {
    fc.assert(
      fc.property(fc.anything(), (value) => {
        expect(readPlacement(value).ok).toBe(false);
      }),
    );
  });

  it("that cannot be read counts as none, and says why", () => {
    const reasons = (placement: unknown) => {
      const found: string[] = [];
      return [storedPlacement({ status: { placement } }, (problems) => found.push(...problems.map(({ path }) => path))), found];
    };
    expect(reasons(undefined)).toEqual([undefined, []]);
    expect(reasons(STORED)).toEqual([legacy, []]);
    expect(reasons({ start: 0 })).toEqual([undefined, ["shards"]]);
    expect(storedPlacement({})).toBeUndefined();
  });
});

describe("the inputs of a table", () => {
  const inputs = (fields: Partial<Placement>) => placementInputs({ status: { placement: stored(samplePlacement(fields)) } });

  it("are the same while only times and counts change", () => {
    const same: Partial<Placement>[] = [
      { away: new Map([[2, 1_000]]) },
      { noneReadySinceMs: NOW },
      { waiting: new Map([[3, NOW]]) },
      { moves: [{ atMs: NOW, namespaces: 3 }] },
      { joinsFromMs: NOW },
      { unevenSinceMs: NOW },
    ];
    expect(new Set(same.map(inputs))).toEqual(new Set([inputs({})]));
  });

  it("change with whatever decides who owns a namespace", () => {
    const other: Partial<Placement>[] = [
      { active: [1] },
      { shards: 3 },
      { start: 1 },
      { losses: new Map([[2, { times: 1, lastMs: NOW }]]) },
      { canaryNamespace: "a" },
      { map: new Uint8Array(SLOTS).fill(1) },
      { clusterMap: new Uint8Array(32).fill(1) },
    ];
    expect(new Set([inputs({}), ...other.map(inputs)]).size).toBe(other.length + 1);
  });
});
