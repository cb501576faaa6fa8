import fc from "fast-check";
import { RE2JS } from "re2js";
import { expect, it } from "vitest";
import { mayBeEmpty, slowPart } from "./regex.ts";

it.each([
  ["a word boundary", String.raw`\bteam`, String.raw`\b, a word boundary`],
  ["no word boundary", String.raw`x\B`, String.raw`\B, a word boundary`],
  ["a counted repetition of an option", "(a?){200}", "{200} after a part that may be empty"],
  ["a counted repetition of a repetition", "(?:(a|b)*){2,}?", "{2,}? after a part that may be empty"],
  ["a counted repetition of an empty alternative", "(a|){0,9}", "{0,9} after a part that may be empty"],
  ["a counted repetition of an anchor", "(?:^){7}", "{7} after a part that may be empty"],
])("finds %s", (_what, pattern, found) => {
  expect(slowPart(pattern)).toBe(found);
});

it.each([
  "^team-[a-z0-9-]{1,40}$",
  "(a|b){3}",
  "(?i)^shop",
  "(a?b){20}",
  "(a?){1}",
  "(a?){0,1}",
  String.raw`\Q\b\E{3}`,
  String.raw`[\b]`,
  String.raw`\\b{4}`,
  "(?P<name>a){5}",
  "a+?{",
])("finds nothing in %s", (pattern) => {
  expect(slowPart(pattern)).toBeUndefined();
});

it("knows whether an expression may be empty, as the engine does", () => {
  const atom = fc.constantFrom(
    "a",
    ".",
    "[ab]",
    "^",
    "$",
    String.raw`\d`,
    String.raw`\Qx\E`,
    "(?i)",
    String.raw`\A`,
    "é",
    "[]^]",
  );
  const { pattern } = fc.letrec<{ pattern: string }>((tie) => ({
    pattern: fc.oneof(
      { maxDepth: 5 },
      atom,
      fc.tuple(tie("pattern"), tie("pattern")).map((parts) => parts.join("")),
      fc.tuple(fc.constantFrom("(", "(?:", "(?P<n>"), tie("pattern"), tie("pattern")).map(([open, a, b]) => `${open}${a}|${b})`),
      fc
        .tuple(tie("pattern"), fc.constantFrom("*", "+", "?", "*?", "+?", "??", "{2}", "{0,3}", "{1,}?"))
        .map(([inner, times]) => `(?:${inner})${times}`),
    ),
  }));
  fc.assert(
    fc.property(pattern, (text) => {
      const known = engine(text);
      fc.pre(known !== undefined);
      expect(mayBeEmpty(text)).toBe(known);
    }),
    { numRuns: 2_000 },
  );
});

/** Undefined if it does not compile, such as a name that is used twice. */
function engine(text: string): boolean | undefined {
  try {
    return RE2JS.compile(`^(?:${text})$`).matcher("").find();
  } catch {
    return undefined;
  }
}
