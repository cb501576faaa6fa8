import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatProblem } from "../../api/problems.ts";
import { PLACEMENT } from "../../api/sharding-keys.ts";
import { SLOTS } from "./balanced-map.ts";
import type { Placement } from "./placement.ts";
import { formatPlacement, parsePlacement, placementInputs, storedPlacement } from "./placement-annotation.ts";

const NOW = Date.parse("2026-01-31T12:00:00.5Z");
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);
const legacy: Placement = {
  start: 3,
  shards: 4,
  active: [1, 3],
  away: new Map([[3, NOW]]),
  noneReadySinceMs: undefined,
  waiting: new Map(),
  losses: new Map(),
  map: undefined,
};
const LEGACY_TEXT = '{"start":3,"shards":4,"active":[1,3],"away":{"3":"2026-01-31T12:00:00.500Z"}}';

function problemsOf(text: string): string[] {
  const result = parsePlacement(text);
  return result.ok ? [] : result.problems.map(formatProblem);
}

describe("the annotation of a placement", () => {
  it("is JSON with times that people can read", () => {
    expect(formatPlacement(legacy)).toBe(LEGACY_TEXT);
    expect(parsePlacement(LEGACY_TEXT)).toEqual({ ok: true, value: legacy });
  });

  it("is the same text for equal placements", () => {
    const [one, other] = [
      [4, NOW],
      [9, NOW],
    ] as const;
    const away = (...rows: (readonly [number, number])[]): Placement => ({ ...legacy, active: [4, 9], away: new Map(rows) });
    expect(formatPlacement(away(one, other))).toBe(formatPlacement(away(other, one)));
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
        const map = Uint8Array.from({ length: SLOTS }, (_, slot) => active[(slot * seed) % active.length] ?? 0);
        const away = new Map(active.filter((shard) => (shard + seed) % 2 === 0).map((shard) => [shard, NOW + shard]));
        const losses = new Map(active.slice(seed % 3).map((shard) => [shard, { times: 1 + (seed % 7), lastMs: NOW - shard }]));
        const [others, noneReadySinceMs] = [active.map((shard) => 65 - shard), seed % 5 === 0 ? NOW : undefined];
        const waiting = new Map(others.filter((shard) => shard % 3 === 0).map((shard) => [shard, NOW]));
        const lasting = { start: seed % 9, shards: active.length, map: isMapped ? map : undefined };
        return { ...lasting, active, away, noneReadySinceMs, waiting, losses };
      });
    fc.assert(
      fc.property(placement, (each) => {
        expect(parsePlacement(formatPlacement(each))).toEqual({ ok: true, value: each });
      }),
    );
    const largest = {
      ...legacy,
      active: upTo(64),
      away: new Map(upTo(64).map((shard) => [shard, NOW])),
      waiting: new Map(upTo(64).map((shard) => [shard, NOW])),
      losses: new Map(upTo(64).map((shard) => [shard, { times: 1_000_000, lastMs: NOW }])),
      map: new Uint8Array(SLOTS).fill(64),
    };
    expect(parsePlacement(formatPlacement(largest)).ok).toBe(true);
  });

  it("may have fields of a later version", () => {
    expect(parsePlacement(LEGACY_TEXT.replace("{", '{"later":1,'))).toEqual({ ok: true, value: legacy });
  });

  it.each([
    ["{", ["is not JSON"]],
    [`"${"x".repeat(16_384)}"`, ["has 16386 characters; at most 16384 are allowed"]],
    ["[]", ["must be an object, not a list"]],
    ["{}", ["start: required", "shards: required", "active: required", "away: required"]],
    [LEGACY_TEXT.replace("[1,3]", "[]"), ["active: must not be empty"]],
    [LEGACY_TEXT.replace("[1,3]", "[3,1]"), ["active: must be ascending"]],
    [LEGACY_TEXT.replace("[1,3]", "[1,65]"), ["active[1]: 65: must be at most 64"]],
    [LEGACY_TEXT.replace("[1,3]", "[1]"), ["away: must name active shards only"]],
    [
      LEGACY_TEXT.replace("2026-01-31", "2026-13-31"),
      ['away[3]: "2026-13-31T12:00:00.500Z": must be a time such as 2026-01-31T12:00:00Z'],
    ],
    [LEGACY_TEXT.replace("}}", '},"map":"AQE="}'), ["map: must have 1024 bytes"]],
    [formatPlacement({ ...legacy, map: new Uint8Array(SLOTS).fill(2) }), ["map: must name active shards only"]],
  ])("is refused with the reason: %s", (text, problems) => {
    expect(problemsOf(text)).toEqual(problems);
  });

  it("is refused and never throws, whatever it is", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        expect(parsePlacement(text).ok).toBe(false);
      }),
    );
  });
});

const PLACED = {
  start: 0,
  shards: 2,
  active: [1, 2],
  noneReadySinceMs: undefined,
  waiting: new Map(),
  losses: new Map(),
  map: undefined,
};
const rootWith = (text: string | undefined) => ({ metadata: { annotations: text === undefined ? {} : { [PLACEMENT]: text } } });

it("reads the annotation, and takes one that cannot be read for none", () => {
  const placement = { ...PLACED, away: new Map([[2, 1_000]]) };
  expect(storedPlacement(rootWith(formatPlacement(placement)))).toEqual(placement);
  expect([undefined, "{", "{}"].map((text) => storedPlacement(rootWith(text)))).toEqual([undefined, undefined, undefined]);
});

it("says why an annotation cannot be read", () => {
  const reasons = (text: string | undefined) => {
    const found: string[] = [];
    storedPlacement(rootWith(text), (problems) => found.push(...problems.map(({ path }) => path)));
    return found;
  };
  expect([undefined, formatPlacement({ ...PLACED, away: new Map() }), '{"start":0}'].map((text) => reasons(text).length)).toEqual(
    [0, 0, 3],
  );
});

it("a shard that goes away changes no input of the table; a shard that leaves does", () => {
  const inputs = (active: readonly number[], away: ReadonlyMap<number, number>) =>
    placementInputs(rootWith(formatPlacement({ ...PLACED, active, away })));
  expect(inputs([1, 2], new Map([[2, 1_000]]))).toBe(inputs([1, 2], new Map()));
  expect(inputs([1], new Map())).not.toBe(inputs([1, 2], new Map()));
});
