import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { group } from "../../../test/support/route-table.ts";
import type { ResourceMatch, RetainedRule } from "../../route/table.ts";
import { canonicalRules, isVisibleBy } from "./retained-rules.ts";

const shown = (...resources: ResourceMatch[]): RetainedRule => ({ resources, visible: true });
const hidden = (...resources: ResourceMatch[]): RetainedRule => ({ resources, visible: false });
const canonical = (list: readonly RetainedRule[]) => canonicalRules([list], (g, r) => isVisibleBy(list, g, r));
const maps = group("", "configmaps");
const apps = group("apps");

describe("canonicalRules", () => {
  it("says all, nothing, and all but something in one rule each", () => {
    expect(canonical([shown()])).toEqual([shown()]);
    expect(canonical([hidden(maps), hidden()])).toEqual([]);
    expect(canonical([hidden(maps), shown()])).toEqual([hidden(maps), shown()]);
    expect(canonical([shown(maps), shown(apps)])).toEqual([shown(maps), shown(apps)]);
  });
  it("leaves out what an earlier rule has said", () => {
    expect(canonical([shown(maps), hidden(maps), shown(group("", "configmaps")), hidden()])).toEqual([shown(maps)]);
    expect(canonical([shown(), hidden(apps)])).toEqual([shown()]);
  });
  it("keeps a resource apart from the wildcards that it is in", () => {
    const list = [hidden(group("apps", "deployments")), shown(apps), shown(group("*", "pods")), hidden()];
    expect(canonical(list)).toEqual([hidden(group("apps", "deployments")), shown(apps, group("*", "pods"))]);
  });
});

const names = fc.constantFrom("", "apps", "batch", "*");
const kinds = fc.constantFrom("configmaps", "pods", "jobs", "*");
const matches = fc
  .tuple(fc.uniqueArray(names, { minLength: 1, maxLength: 2 }), fc.uniqueArray(kinds, { minLength: 1, maxLength: 2 }))
  .map(([apiGroups, resources]): ResourceMatch => ({ apiGroups, resources }));
const lists = fc.array(
  fc
    .tuple(fc.array(matches, { maxLength: 2 }), fc.boolean())
    .map(([resources, visible]): RetainedRule => ({ resources, visible })),
  { maxLength: 4 },
);

it("says the same as the list, of any resource, and the same in the same words", () => {
  fc.assert(
    fc.property(lists, lists, (list, other) => {
      const once = canonical(list);
      for (const g of ["", "apps", "batch", "elsewhere"])
        for (const r of ["configmaps", "pods", "jobs", "others"]) expect(isVisibleBy(once, g, r)).toBe(isVisibleBy(list, g, r));
      expect(canonical(once)).toEqual(once);
      // Names that make no difference leave no trace.
      expect(canonicalRules([list, other], (g, r) => isVisibleBy(list, g, r))).toEqual(once);
    }),
    { numRuns: 500 },
  );
});
