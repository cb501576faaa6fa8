import { describe, expect, it } from "vitest";
import { didYouMean, nearest } from "./nearest.ts";

describe("nearest", () => {
  it("finds a word with two letters swapped, one missing or one too many", () => {
    const known = ["canary-eu", "pilot", "blue"];
    expect(nearest("canary-ue", known)).toBe("canary-eu");
    expect(nearest("canry-eu", known)).toBe("canary-eu");
    expect(nearest("pilots", known)).toBe("pilot");
  });

  it("ignores case", () => {
    expect(nearest("notin", ["In", "NotIn"])).toBe("NotIn");
  });

  it("returns undefined if no word is near", () => {
    expect(nearest("canary", ["pilot", "blue"])).toBeUndefined();
    expect(nearest("", ["a"])).toBe("a");
    expect(nearest("x", [])).toBeUndefined();
  });

  it("returns the first of equally near words", () => {
    expect(nearest("rule-c", ["rule-a", "rule-b"])).toBe("rule-a");
  });

  it("finds a word that is a part of a known one, or the other way round", () => {
    expect(nearest("White", ["Blacklist", "Whitelist"])).toBe("Whitelist");
    expect(nearest("relatedResources", ["httpMatch", "resources"])).toBe("resources");
    expect(nearest("late", ["template"])).toBeUndefined();
  });

  it("writes the nearest word as a question", () => {
    expect(didYouMean("pilto", ["pilot"])).toBe('; did you mean "pilot"?');
    expect(didYouMean("other", ["pilot"])).toBe("");
  });
});
