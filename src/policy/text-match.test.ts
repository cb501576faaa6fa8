import { describe, expect, it } from "vitest";
import type { TextMatch } from "./policy.ts";
import { compileTextMatch, isPattern, MAX_TEXT_LENGTH } from "./text-match.ts";

describe("compileTextMatch", () => {
  it.each<[TextMatch, string, boolean]>([
    [{ exact: "a.example" }, "a.example", true],
    [{ exact: "a.example" }, "aa.example", false],
    [{ exact: "a.example" }, "axexample", false],
    [{ regex: "a[.]example" }, "aa.example.org", true],
    [{ regex: "^a[.]example$" }, "a.example.org", false],
    [{ regex: "(?i)A" }, "a", true],
    [{ regex: "^a*$" }, "a".repeat(MAX_TEXT_LENGTH), true],
    [{ regex: "^a*$" }, "a".repeat(MAX_TEXT_LENGTH + 1), false],
  ])("%j", (match, text, expected) => expect(compileTextMatch(match)(text)).toBe(expected));

  it("takes linear time for an expression that stops a backtracking engine for ever", () => {
    expect(compileTextMatch({ regex: "^(a|aa|a*)*b$" })("a".repeat(MAX_TEXT_LENGTH))).toBe(false);
  });
});

it.each([
  ["a", true],
  ["a{1000}", true],
  ["(", false],
  ["(?=a)", false],
  ["a".repeat(513), false],
])("isPattern(%s): %s", (pattern, expected) => expect(isPattern(pattern)).toBe(expected));
