import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cutShards, fnv1a64, formatShardSelector, isInRanges } from "./shard-ranges.ts";

const ROOMY = { maxRanges: 1_000 };
const TOP = 1n << 64n;

// Of ns-0 to ns-199 in the order of their hashes: neighbours here are neighbours there.
const byHash = Array.from({ length: 200 }, (_, index) => `ns-${index}`).sort((a, b) => (fnv1a64(a) < fnv1a64(b) ? -1 : 1));
const pick = (...indices: number[]) => indices.map((index) => byHash[index] as string);

describe("the ranges for a subset", () => {
  it("hold everything but the foreign namespaces where there is room: one that nobody has heard of comes through", () => {
    const cut = cutShards(pick(1, 4), pick(2, 3), ROOMY);
    const [two, three] = pick(2, 3).map(fnv1a64) as [bigint, bigint];
    expect(cut).toEqual({
      ranges: [
        { start: 0n, end: two },
        { start: two + 1n, end: three },
        { start: three + 1n, end: TOP },
      ],
      hidesUnknown: false,
      letThrough: 0,
    });
  });

  it("close the gaps between foreign namespaces first when they are too many, the narrowest first", () => {
    const cut = cutShards(pick(1, 4), pick(2, 3), { maxRanges: 2 });
    const [two, three] = pick(2, 3).map(fnv1a64) as [bigint, bigint];
    expect(cut?.ranges).toEqual([
      { start: 0n, end: two },
      { start: three + 1n, end: TOP },
    ]);
    expect(cut?.hidesUnknown).toBe(true);
  });

  it("are then joined over the fewest foreign namespaces, which come through", () => {
    // own, 3 foreign, own, 1 foreign, own, 2 foreign, own
    const [mine, others] = [pick(0, 4, 6, 9), pick(1, 2, 3, 5, 7, 8)];
    const cut = cutShards(mine, others, { maxRanges: 2 });
    expect(cut?.letThrough).toBe(3);
    expect(others.filter((name) => isInRanges(cut?.ranges ?? [], name))).toEqual(pick(5, 7, 8));
    expect(mine.every((name) => isInRanges(cut?.ranges ?? [], name))).toBe(true);
  });

  it("close no gap where namespaces that nobody has heard of are ours", () => {
    const cut = cutShards(pick(1, 4), pick(2, 3), { maxRanges: 2, mayHideUnknown: false });
    expect([cut?.hidesUnknown, cut?.ranges.length, cut?.letThrough]).toEqual([false, 2, 1]);
  });

  it("hold a namespace of ours whose hash is a foreign one's as well", () => {
    // Both names are taken for equal hashes here by being equal.
    expect(cutShards(["x"], ["x", "y"], ROOMY)?.letThrough).toBe(0);
    expect(isInRanges(cutShards(["x"], ["x", "y"], ROOMY)?.ranges ?? [], "x")).toBe(true);
  });

  it("do not exist where nothing can be left out", () => {
    expect(cutShards(pick(0, 2), [], ROOMY)).toBeUndefined();
    expect(cutShards(pick(0, 2), pick(1), { maxRanges: 1 })).toBeUndefined();
  });

  it("leave at least one gap open to a subset that owns nothing", () => {
    expect(cutShards([], byHash, { maxRanges: 1 })?.ranges).toHaveLength(1);
  });

  it("are cut at the namespaces, so that names of one family, whose hashes lie close together, part as well", () => {
    const cut = cutShards(
      byHash.filter((_, index) => index % 2 === 0),
      byHash.filter((_, index) => index % 2 === 1),
      ROOMY,
    );
    expect(cut).toMatchObject({ hidesUnknown: false, letThrough: 0 });
    expect(cut?.ranges).toHaveLength(101);
  });
});

it("are written with sixteen digits, and the end of all with seventeen", () => {
  const ranges = [
    { start: 0n, end: 0x1fn },
    { start: 0x20n, end: TOP },
  ];
  expect(formatShardSelector(ranges)).toBe(
    "shardRange(object.metadata.namespace,'0x0000000000000000','0x000000000000001f')||" +
      "shardRange(object.metadata.namespace,'0x0000000000000020','0x10000000000000000')",
  );
});

it("gives the values of FNV's own test vectors", () => {
  expect(fnv1a64("")).toBe(0xcbf29ce484222325n);
  expect(fnv1a64("a")).toBe(0xaf63dc4c8601ec8cn);
  expect(fnv1a64("foobar")).toBe(0x85944171f73967e8n);
});

it("equals the definition, byte by byte in UTF-8", () => {
  const byDefinition = (text: string) => {
    let hash = 0xcbf29ce484222325n;
    for (const byte of new TextEncoder().encode(text)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
    return hash;
  };
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 70 }), (text) => {
      expect(fnv1a64(text)).toBe(byDefinition(text));
    }),
    { numRuns: 500 },
  );
});
