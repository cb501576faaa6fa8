import { describe, expect, it } from "vitest";
import { formatTerms, isSetTerm, matchesTerms, negateTerm, parseTerms, type SetTerm } from "./label-selector.ts";

const term = (key: string, operator: SetTerm["operator"], ...values: string[]): SetTerm => ({ key, operator, values });

describe("the string form of terms", () => {
  it.each<[SetTerm, string]>([
    [term("tier", "in", "gold"), "tier=gold"],
    [term("tier", "notin", "gold"), "tier!=gold"],
    [term("a.b/tier", "in", "silver", "gold", "gold"), "a.b/tier in (gold,silver)"],
    [term("tier", "notin", "gold", ""), "tier notin (,gold)"],
    [term("tier", "in", ""), "tier="],
    [term("tier", "exists"), "tier"],
    [term("tier", "!"), "!tier"],
  ])("of %o is %s, and is read back to the same", (one, text) => {
    expect(formatTerms([one])).toBe(text);
    for (const labels of [{}, { tier: "" }, { tier: "gold" }, { tier: "x" }, { "a.b/tier": "gold" }]) {
      expect(matchesTerms(parseTerms(text), labels)).toBe(matchesTerms([one], labels));
    }
  });
  it("joins terms by commas, and is empty for none", () => {
    expect(formatTerms([term("a", "exists"), term("b", "in", "x", "y")])).toBe("a,b in (x,y)");
    expect(formatTerms([])).toBe("");
  });
});

it("a negated term holds for exactly the labels for which the term does not", () => {
  for (const one of [term("t", "in", "x", ""), term("t", "notin", "x"), term("t", "exists"), term("t", "!")]) {
    for (const labels of [{}, { t: "" }, { t: "x" }, { t: "y" }, { u: "x" }]) {
      expect(matchesTerms([negateTerm(one)], labels)).toBe(!matchesTerms([one], labels));
    }
  }
});

it("comparisons of numbers have no negation", () => {
  expect(parseTerms("a>1,b").map(isSetTerm)).toEqual([false, true]);
});
