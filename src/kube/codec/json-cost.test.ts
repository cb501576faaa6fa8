import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { collectGarbage } from "../../base/collect-garbage.ts";
import { type JsonBounds, JsonCost } from "./json-cost.ts";

const NO_BOUNDS: JsonBounds = { depth: Infinity, values: Infinity, names: Infinity, stringBytes: Infinity };
const BOUNDS: JsonBounds = { depth: 3, values: 6, names: 2, stringBytes: Infinity };

function costOf(text: string | Buffer, bounds = NO_BOUNDS): JsonCost {
  const cost = new JsonCost(bounds);
  cost.scan(Buffer.from(text));
  return cost;
}

describe("a text within the bounds", () => {
  it.each([
    "[[[1,2]],3]",
    '{"a":{"b":[1,2]}}',
    '["[[[[[[","{{{{,,,,::::","\\"[[[[[",1]',
    '"',
    '["unfinished [[[[[[',
    "[],[],[]",
    "",
    '"\\',
  ])("%s", (text) => expect(costOf(text, BOUNDS).excess).toBeUndefined());
});

describe("a text with too much", () => {
  it.each([
    ["[[[[", "more than 3 levels"],
    ['[{"a":[{', "more than 3 levels"],
    ["[1,2,3,4,5,6", "more than 6 values"],
    ["[[],[],[],[]", "more than 6 values"],
    ['{"a":1,"b":2,"c":', "more than 2 names of members"],
    ['["\\\\",[[[', "more than 3 levels"],
    ['["\\u0022",[[[', "more than 3 levels"],
  ])("%s", (text, excess) => expect(costOf(text, BOUNDS).excess).toBe(excess));

  it.each([
    ['["12345678', undefined],
    ['["12345678","12345678"', undefined],
    ['["123456789', "a string of more than 8 bytes"],
    ['{"\\u0061\\u0062":1', "a string of more than 8 bytes"],
  ])("in one string: %s", (text, excess) => {
    const bounds = { ...NO_BOUNDS, stringBytes: 8 };
    expect(costOf(text, bounds).excess).toBe(excess);
    const byByte = new JsonCost(bounds);
    for (let end = 1; end <= text.length; end++) byByte.scan(Buffer.from(text.slice(0, end)));
    expect(byByte.excess).toBe(excess);
  });

  it("is found out at the bound, and costs nothing behind it", () => {
    const cost = costOf("[".repeat(1_000_000), BOUNDS);
    expect(cost.parsedBytes).toBeLessThan(1_000);
    cost.scan(Buffer.alloc(2_000_000, "["));
    expect(cost.parsedBytes).toBeLessThan(1_000);
  });
});

it("counts values and levels as JSON.parse makes them, and never fewer", () => {
  const countOf = (value: unknown): { values: number; depth: number; names: number } => {
    if (typeof value !== "object" || value === null) return { values: 1, depth: 0, names: 0 };
    const parts = Object.values(value).map(countOf);
    const sum = (of: "values" | "names") => parts.reduce((total, part) => total + part[of], 0);
    const names = Array.isArray(value) ? 0 : parts.length;
    return { values: 1 + sum("values"), depth: 1 + Math.max(0, ...parts.map(({ depth }) => depth)), names: names + sum("names") };
  };
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), fc.boolean(), (value, isPretty) => {
      const text = JSON.stringify(value, null, isPretty ? 2 : 0);
      const { values, depth, names } = countOf(JSON.parse(text));
      expect(costOf(text, { depth, values: values * 2 + 1, names, stringBytes: Infinity }).excess).toBeUndefined();
      if (depth > 0) expect(costOf(text, { ...NO_BOUNDS, depth: depth - 1 }).excess).toMatch(/levels/);
      if (names > 0) expect(costOf(text, { ...NO_BOUNDS, names: names - 1 }).excess).toMatch(/names/);
      if (values > 1) expect(costOf(text, { ...NO_BOUNDS, values: values - 1 }).excess).toMatch(/values/);
    }),
  );
});

it("comes to the same in any chunks, of any bytes", () => {
  const text = fc.array(fc.constantFrom("[", "]", "{", "}", '"', "\\", ",", ":", "ab", "é", " ", "\u0000"), { maxLength: 60 });
  fc.assert(
    fc.property(text, fc.array(fc.nat(9), { minLength: 1 }), (parts, sizes) => {
      const whole = Buffer.from(parts.join(""));
      const chunked = new JsonCost(BOUNDS);
      for (let at = 0, index = 0; at < whole.length; index++) {
        at += 1 + (sizes[index % sizes.length] ?? 0);
        chunked.scan(whole.subarray(0, at));
      }
      const { excess, parsedBytes } = costOf(whole, BOUNDS);
      expect([chunked.excess, chunked.parsedBytes]).toEqual([excess, parsedBytes]);
    }),
    { numRuns: 500 },
  );
});

describe("what parsing retains is never more than the estimate", () => {
  const COUNT = 10_000;
  // Just behind the sizes at which dictionaries grow they are the emptiest.
  const JUST_GROWN = 11_000;
  const many = (of: (at: number) => string, count = COUNT) => Array.from({ length: count }, (_, at) => of(at)).join();
  const object = (names: number, of: (at: number) => string) => `{${many(of, names)}}`;
  const chain = (levels: number, at: number) =>
    `${Array.from({ length: levels }, (_, level) => `{"c${at}x${level}":`).join("")}1${"}".repeat(levels)}`;

  it.each<[string, string]>([
    ["nested lists", `[${many(() => "[".repeat(90) + "]".repeat(90), 500)}]`],
    ["empty lists", `[${many(() => "[]")}]`],
    ["empty objects", `[${many(() => "{}")}]`],
    ["lists of one", `[${many(() => "[1]")}]`],
    ["objects of the same name", `[${many(() => '{"a":1}')}]`],
    ["objects with a name of their own", `[${many((at) => `{"k${at}":1}`)}]`],
    ["objects with two names of their own", `[${many((at) => `{"p${at}":1,"q${at}":{}}`)}]`],
    ["objects with five names of their own", `[${many((at) => object(5, (name) => `"${at}f${name}":1`), 2_000)}]`],
    ["objects with 30 names of their own", `[${many((at) => object(30, (name) => `"${at}t${name}":1`), 700)}]`],
    ["objects with 150 names of their own", `[${many((at) => object(150, (name) => `"${at}h${name}":1`), 140)}]`],
    ["chains of objects", `[${many((at) => chain(90, at), 200)}]`],
    ["one object of many names", object(JUST_GROWN, (at) => `"n${at}":1`)],
    ["one object of many names and objects", object(JUST_GROWN, (at) => `"m${at}":{}`)],
    ["one object of many numbers as names", object(JUST_GROWN, (at) => `"${at * 20_000}":1`)],
    ["objects of one large number as name", `[${many(() => '{"4294967294":1}')}]`],
    ["objects of a number and a name of their own", `[${many((at) => `{"900":1,"i${at}":1}`)}]`],
    ["short strings", `[${many((at) => `"s${at}"`)}]`],
    ["short strings of two bytes a character", `[${many((at) => `"ŝ${at}"`)}]`],
    ["escaped strings", `[${many((at) => `"\\u1234${at}"`)}]`],
    ["numbers", `[${many((at) => `${at}.5`)}]`],
    ["numbers among others", `[null,${many(() => "1.5")}]`],
    ["large numbers", `[null,${many((at) => `1e${at % 300}`)}]`],
    ["a long string", `["${"a".repeat(4_000_000)}"]`],
    ["a long string with one wide character", `["${"a".repeat(4_000_000)}ŝ"]`],
    ["a long string with one wide escape", `["${"a".repeat(4_000_000)}\\u1234"]`],
    ["a long string of wide characters", `["${"語".repeat(1_300_000)}"]`],
    ["long names", object(500, (at) => `"${"k".repeat(6_000)}${at}":1`)],
    ["names __proto__", `[${many(() => '{"__proto__":{}}')}]`],
  ])("of %s", (_, text) => expectWithinEstimate(text));

  it("of any mixture", () => {
    const leaf = fc.constantFrom("1", "1.5", "null", '""', '"abc"', '"é"', '"ŝx"', "[]", "{}", "{NAME:1}", "[1,2]", "1e300");
    const shape = fc.letrec<{ node: string }>((tie) => ({
      node: fc.oneof(
        { depthSize: "small" },
        leaf,
        fc.array(tie("node"), { maxLength: 5 }).map((items) => `[${items.join()}]`),
        fc.array(tie("node"), { maxLength: 5 }).map((items) => `{${items.map((item) => `NAME:${item}`).join()}}`),
      ),
    })).node;
    let run = 0;
    fc.assert(
      fc.property(fc.array(shape, { minLength: 1, maxLength: 8 }), fc.boolean(), (shapes, areOwn) => {
        run++;
        let name = 0;
        const named = (text: string) => text.replaceAll("NAME", () => `"${areOwn ? `r${run}x` : ""}${name++ % 40_000}"`);
        expectWithinEstimate(`[${many((at) => named(shapes[at % shapes.length] as string), 4_000)}]`);
      }),
      { numRuns: 8 },
    );
  });
});

/** Feedback vectors and the like, which the engine makes beside. */
const NOISE_BYTES = 100_000;

function expectWithinEstimate(text: string): void {
  const bytes = Buffer.from(text);
  const { parsedBytes } = costOf(bytes);
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  const value: unknown = JSON.parse(bytes.toString());
  collectGarbage();
  const retained = process.memoryUsage().heapUsed - before;
  expect(value).toBeDefined();
  expect(retained).toBeLessThan(parsedBytes + NOISE_BYTES);
}
