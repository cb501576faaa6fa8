import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { budget } from "../../test/support/fuzz.ts";
import { LISTED_STRING_BYTES, parseBounded } from "./bounded-json.ts";
import { collectGarbage } from "./collect-garbage.ts";

const MEMORY = 8 * 1024 * 1024;
const parse = (text: string | Uint8Array, left = MEMORY) => parseBounded(Buffer.from(text), { left });
const invalid = (why: RegExp) => expect.objectContaining({ code: "MESSAGE_INVALID", message: expect.stringMatching(why) });

describe("JSON within its budget", () => {
  it("is parsed as JSON.parse does", () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 5 }), (text) => {
        expect(parse(text)).toEqual(JSON.parse(text));
      }),
      budget(),
    );
  });

  it("may have any characters in its strings, which are no structure", () => {
    const text = String.raw`["[[[[", "{\"{\\", ",,,,::::", "\\", "\u0022]"]`;
    expect(parse(text, text.length + 64 + 5 * 32)).toEqual(JSON.parse(text));
    expect(parse(`["${"[".repeat(1_000)}"]`)).toHaveLength(1);
  });

  it("spends the budget, which several texts can share", () => {
    const memory = { left: 1_000 };
    parseBounded(Buffer.from('["a","b"]'), memory);
    expect(memory.left).toBe(1_000 - 9 - 64 - 32);
    const count = (names: readonly string[]) => {
      const left = { left: 10_000 };
      parseBounded(Buffer.from(JSON.stringify(names)), left);
      return 10_000 - left.left;
    };
    expect(count(["a", "b", "name"]) - count(["a", "b"])).toBe(LISTED_STRING_BYTES + 4);
    expect(() => parseBounded(Buffer.from("[0,0]"), { left: 100 })).toThrow(invalid(/memory/));
  });

  it("is refused if it is no JSON, is cut off anywhere, or is too deep", () => {
    const whole = '{"a":["b\\"",{"c":[]}]}';
    for (let end = 0; end < whole.length; end++) expect(() => parse(whole.slice(0, end))).toThrow(invalid(/no JSON/));
    for (const text of ["\ufeff[]", "[]]", "{'a':1}", Buffer.from([0x22, 0xff])])
      expect(() => parse(text)).toThrow(invalid(/no JSON/));
    expect(parse("[".repeat(32) + "]".repeat(32))).toHaveLength(1);
    expect(() => parse("[".repeat(33) + "]".repeat(33))).toThrow(invalid(/levels/));
    expect(() => parse(`${'{"a":'.repeat(33)}0${"}".repeat(33)}`)).toThrow(invalid(/levels/));
  });
});

const many = (count: number, item: (at: number) => string) => `[${Array.from({ length: count }, (_, at) => item(at)).join()}]`;
/** Texts that become as large as possible in memory. */
const WORST: Readonly<Record<string, (count: number) => string>> = {
  "empty objects": (count) => many(count, () => "{}"),
  "empty lists": (count) => many(count, () => "[]"),
  "lists of one": (count) => many(count, () => "[0]"),
  "numbers that are no integers": (count) => many(count, (at) => `${at}.5`),
  "short strings": (count) => many(count, (at) => `"${at.toString(36)}"`),
  "escaped strings": (count) => many(count, (at) => `"\\u4e16${at.toString(36)}"`),
  "objects of one key, each another": (count) => many(count, (at) => `{"k${at}":0}`),
  "objects of one index, each another": (count) => many(count, (at) => `{"${at}":0}`),
  "objects of five keys": (count) => many(count, (at) => `{"a${at}":0,"b${at}":0,"c${at}":0,"d${at}":0,"e${at}":0}`),
  "an object of many keys": (count) => `{${many(count, (at) => `"${at.toString(36)}":0`).slice(1, -1)}}`,
  "long strings with one wide character": (count) => many(count, () => `"\u4e16${"a".repeat(500)}"`),
};

describe("JSON that takes little room on the wire and much in memory", () => {
  it.each(Object.keys(WORST))("takes at most twice its budget: %s", (name) => {
    const make = WORST[name] as (count: number) => string;
    const cost = (text: string) => {
      const memory = { left: 2 ** 40 };
      parseBounded(Buffer.from(text), memory);
      return 2 ** 40 - memory.left;
    };
    const count = Math.floor((1_000 * MEMORY) / cost(make(1_000)));
    const text = Buffer.from(make(count));
    const memory = { left: 1.1 * MEMORY };
    collectGarbage();
    const before = process.memoryUsage().heapUsed;
    const value = parseBounded(text, memory);
    collectGarbage();
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(2 * MEMORY);
    expect(Object.keys(value as object)).toHaveLength(count);
    expect(memory.left).toBeLessThan(0.3 * MEMORY); // the text is about as large as it may be
    expect(() => parse(make(2 * count))).toThrow(invalid(/memory/));
  });
});
