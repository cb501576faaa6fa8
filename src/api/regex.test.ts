import { describe, expect, it } from "vitest";
import { regexSize } from "./regex.ts";

describe("the size of a regular expression", () => {
  it("is about the length of an expression without repetitions", () => {
    for (const pattern of ["^canary-", "^(a|b|c)-[0-9]+$", String.raw`^\d+\.x$`, "a*b+c?"]) {
      expect(regexSize(pattern)).toBeLessThan(2 * pattern.length + 2);
    }
  });
  it.each([
    ["((a{1,10}){1,10}){1,10}", 1_000],
    ["(?:abcdefghij){1000}", 10_000],
    ["a{500,}", 500],
    ["(aaaa[)]aaaa){1000}", 9_000],
    ["(aaaa[]()]aaaa){1000}", 9_000],
    ["(aaaa[[:alpha:])]aaaa){1000}", 9_000],
    [String.raw`(aaaa\)aaaa){1000}`, 9_000],
    [String.raw`(aaaa\Q)[\Eaaaa){1000}`, 9_000],
    [String.raw`(aaaa[\])]aaaa){1000}`, 9_000],
    [String.raw`\pL{100}`, 5_000],
    ["(?i)[A-\uffff]", 1_000],
    [String.raw`(?i)[\x{41}-\x{ffff}]`, 1_000],
    [`${"(".repeat(100)}a{1000}`, 1_000],
  ])("of %s counts its repetitions, for any content", (pattern, least) => {
    expect(regexSize(pattern)).toBeGreaterThanOrEqual(least);
    expect(regexSize(pattern)).toBeLessThan(6 * least + 200);
  });
  it.each(["[", "[[:a", "[[:a:]", "\\p{", "\\x{1", "\\Qa", "{1,", "((?i)", "[^]"])(
    "reads a megabyte of %s once",
    { timeout: 90_000 },
    (text) => {
      const startedMs = performance.now();
      for (const end of ["", "\\", ")"]) regexSize(text.repeat(1_000_000 / text.length) + end);
      expect(performance.now() - startedMs).toBeLessThan(60_000); // each character against all others would take a quarter of an hour
    },
  );
  it("treats unclosed parts as RE2 does, which refuses them", () => {
    for (const pattern of ["a{500}[b", String.raw`a{500}\p{L`, "a{500}[b\\"]) expect(regexSize(pattern)).toBeGreaterThan(500);
  });
  it("treats braces that are no repetition as plain characters", () => {
    for (const pattern of [String.raw`\x{1000}`, String.raw`\Qa{1000}\E`, "[a{1000}]", "a{,1000}"]) {
      expect(regexSize(pattern)).toBeLessThan(100);
    }
  });
});
