import { describe, expect, it } from "vitest";
import { parseTerms } from "../../test/localkube/parse-terms.ts";
import { formatTerms, type LabelTerm, matchesTerms, negateTerm } from "./label-selector.ts";

const term = (key: string, operator: LabelTerm["operator"], ...values: string[]): LabelTerm => ({ key, operator, values });

describe("the string form of terms", () => {
  it.each<[LabelTerm, string]>([
    [term("tier", "in", "gold"), "tier=gold"],
    [term("tier", "notin", "gold"), "tier!=gold"],
    [term("a.b/tier", "in", "silver", "gold", "gold"), "a.b/tier in (gold,silver)"],
    [term("tier", "notin", "gold", ""), "tier notin (,gold)"],
    [term("tier", "in", ""), "tier="],
    [term("tier", "exists"), "tier"],
    [term("tier", "!"), "!tier"],
  ])("of %o is %s, and parses back to the same term", (one, text) => {
    expect(formatTerms([one])).toBe(text);
    for (const labels of [{}, { tier: "" }, { tier: "gold" }, { tier: "x" }, { "a.b/tier": "gold" }]) {
      expect(matchesTerms(parseTerms(text), labels)).toBe(matchesTerms([one], labels));
    }
  });
  it("joins terms by commas and is empty without terms", () => {
    expect(formatTerms([term("a", "exists"), term("b", "in", "x", "y")])).toBe("a,b in (x,y)");
    expect(formatTerms([])).toBe("");
  });
});

it("a negated term matches exactly the labels that the term does not match", () => {
  for (const one of [term("t", "in", "x", ""), term("t", "notin", "x"), term("t", "exists"), term("t", "!")]) {
    for (const labels of [{}, { t: "" }, { t: "x" }, { t: "y" }, { u: "x" }]) {
      expect(matchesTerms([negateTerm(one)], labels)).toBe(!matchesTerms([one], labels));
    }
  }
});
