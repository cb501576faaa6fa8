import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { snapshot, subset, table } from "../../../test/support/route-table.ts";
import { excludedBy, matchesAgent, servesAlike } from "./callers.ts";
import { NO_CALLER_POLICY } from "./snapshot.ts";

const routes = table([subset("v2")], { prod: [], pilot: [0] });
const of = (name: string, ...defaultOnlyUserAgents: string[]) =>
  snapshot(routes, { subset: name, callers: { ...NO_CALLER_POLICY, defaultOnlyUserAgents } });

describe("matchesAgent", () => {
  it("takes an entry without a star as the whole user agent, as the first mesh did", () => {
    expect(matchesAgent("kruise-manager/gc", "kruise-manager/gc")).toBe(true);
    expect(matchesAgent("kruise-manager", "kruise-manager/gc")).toBe(false);
    expect(matchesAgent("Foo", "foo")).toBe(false);
  });

  it.each([
    ["foo-operator/*", "foo-operator/v1.2 (linux/amd64) kubernetes/$Format", true],
    ["foo-operator/*", "foo-operator-extra/v1.2", false],
    ["*/leader-election", "manager/v0.0.0 (linux/amd64) kubernetes/$Format/leader-election", true],
    ["foo/*/gc", "foo/v1 (linux/amd64)/gc", true],
    ["a*b*a", "aba", true],
    ["a*b*a", "ab", false],
    ["ab*ba", "aba", false],
    ["*", "", true],
    ["**", "x", true],
    ["a**b", "ab", true],
  ])("takes * for any characters: %s and %s", (pattern, agent, matches) => {
    expect(matchesAgent(pattern, agent)).toBe(matches);
  });

  it("agrees with a regular expression on anything", () => {
    const text = fc.string({ unit: fc.constantFrom("a", "b", "*"), maxLength: 8 });
    fc.assert(
      fc.property(text, text, (pattern, raw) => {
        const agent = raw.replaceAll("*", "c");
        expect(matchesAgent(pattern, agent)).toBe(new RegExp(`^${pattern.replaceAll("*", ".*")}$`).test(agent));
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("excludedBy", () => {
  it("names the entry, and excludes nobody from the default subset", () => {
    expect(excludedBy(of("v2", "other", "foo/*"), "foo/1")).toBe("foo/*");
    expect(excludedBy(of("v2", "other", "foo/*"), "bar/1")).toBeUndefined();
    expect(excludedBy(of("", "foo/*"), "foo/1")).toBeUndefined();
  });
});

describe("servesAlike", () => {
  it("is false when an entry comes or goes, or the pod comes out of the default subset", () => {
    expect(servesAlike(of("v2", "a"), of("v2", "a"))).toBe(true);
    expect(servesAlike(of("v2"), of("v2", "a"))).toBe(false);
    expect(servesAlike(of("v2", "a"), of("v2", "b"))).toBe(false);
    expect(servesAlike(of("", "a"), of("v2", "a"))).toBe(false);
    expect(servesAlike(of("", "a"), of("", "b"))).toBe(true);
  });
});
