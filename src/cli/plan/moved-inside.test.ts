import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { sampleVirtualApp } from "../../../test/support/virtual-app.ts";
import { type VirtualAppSpec, validateVirtualApp } from "../../api/virtual-app.ts";
import type { Labels } from "../../kube/label-selector.ts";
import { NONE_CHOSEN } from "../../manager/apps/chosen-clusters.ts";
import { compileNow } from "../../manager/apps/compile/compile-now.ts";
import type { RouteSpec } from "../../manager/apps/compile/route-spec.ts";
import { clusterRouteOf } from "../../manager/virtual-app/route-rules.ts";
import { ownersIn, shownOwners } from "../../mesh/ownership/place-owners.ts";
import { type MovedInside, movedInside } from "./moved-inside.ts";
import { comparedMoves } from "./moved-namespaces.ts";
import { labelTermsIn, MAX_LABEL_SETS, possibleLabels } from "./possible-labels.ts";

const SUBSETS = ["v2", "v3"];
type Match = Readonly<Record<string, unknown>>;

/** @param matches by subset; each has one about home, too */
function specOf(matches: Readonly<Record<string, readonly Match[]>>): VirtualAppSpec {
  const inEu = (match: Match) => ({ clusters: ["eu"], ...match });
  const subRules = SUBSETS.map((name) => ({
    name,
    match: [{ namespaceRegex: `^home-${name}$` }, ...(matches[name] ?? []).map(inEu)],
  }));
  const subsets = SUBSETS.map((name) => ({ name, labels: { version: name }, routeRules: [name] }));
  const object = sampleVirtualApp({ route: { subRules }, subsets });
  const checked = validateVirtualApp(object);
  if (!checked.ok) throw new Error(JSON.stringify(checked.problems));
  return checked.value.spec;
}
const routeOf = (spec: VirtualAppSpec) => clusterRouteOf(spec, { name: "eu", labels: {} }, NONE_CHOSEN);
const labelled = (labels: Labels) => ({ namespaceSelector: { matchLabels: labels } });

/** What the slices say when the namespaces have these labels. */
function publishedBy(route: RouteSpec, namespaces: Readonly<Record<string, Labels>>) {
  const table = compileNow(
    route,
    Object.entries(namespaces).map(([name, labels]) => ({ name, labels })),
  );
  return new Map(Object.keys(namespaces).map((name) => [name, shownOwners(ownersIn(table, name))]));
}

function plan(before: VirtualAppSpec, after: VirtualAppSpec, namespaces: Readonly<Record<string, Labels>>, isNamed = false) {
  return movedInside({
    before: routeOf(before),
    after: routeOf(after),
    published: publishedBy(routeOf(before), namespaces),
    labels: new Map(isNamed ? Object.entries(namespaces) : []),
    possible: possibleLabels(labelTermsIn([before, after])),
  });
}

describe("without the labels, a plan inside a cluster", () => {
  const namespaces = { "team-a": { tier: "canary" }, "team-b": {}, "x-1": { tier: "other" } };
  const canary = labelled({ tier: "canary" });

  it("knows from the present owners what a rule matches that goes to another subset", () => {
    expect(plan(specOf({ v2: [canary] }), specOf({ v3: [canary] }), namespaces)).toEqual({
      moves: [{ from: "v2", to: "v3", namespaces: ["team-a"] }],
      unknown: [],
    });
  });

  it("knows what rules about names move, and what a rule gives up", () => {
    const names = { namespaceRegex: "^team-" };
    expect(plan(specOf({ v2: [canary] }), specOf({ v2: [names] }), namespaces)).toEqual({
      moves: [{ from: "default", to: "v2", namespaces: ["team-b"] }],
      unknown: [],
    });
  });

  it("does not know what a new label matches, unless the owner is the same in any case", () => {
    const grown = specOf({ v2: [canary, labelled({ tier: "other" })] });
    expect(plan(specOf({ v2: [canary] }), grown, namespaces)).toEqual({ moves: [], unknown: ["team-b", "x-1"] });
    expect(plan(specOf({ v2: [canary] }), grown, namespaces, true)).toEqual({
      moves: [{ from: "default", to: "v2", namespaces: ["x-1"] }],
      unknown: [],
    });
  });

  it("begins at what is published where the stored rules have not given it, as after a pause", () => {
    const { moves } = movedInside({
      before: routeOf(specOf({ v2: [{ namespaceRegex: "^x-" }] })),
      after: routeOf(specOf({ v2: [{ namespaceRegex: "^x-" }] })),
      published: new Map([["team-a", [{ subset: "v2" }]]]),
      labels: new Map(),
      possible: [{}],
    });
    expect(moves).toEqual([{ from: "v2", to: "default", namespaces: ["team-a"] }]);
  });

  it("knows nothing where too many labels would have to be tried, but what the user names", () => {
    const terms = Array.from({ length: MAX_LABEL_SETS }, (_, at) => labelled({ [`key-${at}`]: "x" }));
    const [before, after] = [specOf({ v2: terms.slice(0, 8) }), specOf({ v3: terms.slice(0, 8) })];
    expect(possibleLabels(labelTermsIn([before, after]))).toBeUndefined();
    expect(plan(before, after, { a: { "key-1": "x" }, b: {} }).unknown).toEqual(["a", "b"]);
    expect(plan(before, after, { a: { "key-1": "x" }, b: {} }, true)).toEqual({
      moves: [{ from: "v2", to: "v3", namespaces: ["a"] }],
      unknown: [],
    });
  });
});

it("only rules about other clusters decide which labels are tried", () => {
  const spec = { selector: { matchLabels: { app: "shop" } }, subRules: [{ match: [labelled({ home: "x" })] }] };
  expect(labelTermsIn(spec)).toEqual([]);
  expect(possibleLabels([])).toEqual([{}]);
});

const expression = fc.oneof(
  fc.constant(labelled({})),
  fc
    .record({ key: fc.constantFrom("a", "b"), value: fc.constantFrom("1", "2") })
    .map(({ key, value }) => labelled({ [key]: value })),
  fc
    .record({
      key: fc.constantFrom("a", "b"),
      operator: fc.constantFrom("In", "NotIn"),
      values: fc.subarray(["1", "2", "3"], { minLength: 1 }),
    })
    .map((each) => ({ namespaceSelector: { matchExpressions: [each] } })),
  fc
    .record({ key: fc.constantFrom("a", "b"), operator: fc.constantFrom("Exists", "DoesNotExist") })
    .map((each) => ({ namespaceSelector: { matchExpressions: [each] } })),
  fc.constantFrom("^n-[0-3]$", "n-1", "[24]$").map((namespaceRegex) => ({ namespaceRegex })),
);
const matches = fc.record({ v2: fc.array(expression, { maxLength: 2 }), v3: fc.array(expression, { maxLength: 2 }) });
const labels = fc.dictionary(fc.constantFrom("a", "b", "c"), fc.constantFrom("1", "2", "3", "4"));

it("whatever the labels are, what a plan says happens, and with the labels it says everything", () => {
  const byName = ({ moves }: Pick<MovedInside, "moves">) =>
    new Map(moves.flatMap(({ from, to, namespaces }) => namespaces.map((name) => [name, `${from} -> ${to}`] as const)));
  let known = 0;
  fc.assert(
    fc.property(matches, matches, fc.array(labels, { minLength: 1, maxLength: 6 }), (old, next, all) => {
      const [before, after] = [specOf(old), specOf(next)];
      const namespaces = Object.fromEntries(all.map((each, at) => [`n-${at}`, each]));
      const facts = Object.entries(namespaces).map(([name, each]) => ({ name, labels: each }));
      const moveOf = comparedMoves(compileNow(routeOf(before), facts), compileNow(routeOf(after), facts));
      const truth = new Map(
        Object.keys(namespaces).flatMap((name) => {
          const move = moveOf(name);
          return move === undefined ? [] : [[name, `${move.from} -> ${move.to}`] as const];
        }),
      );
      const blind = plan(before, after, namespaces);
      for (const name of Object.keys(namespaces)) {
        if (blind.unknown.includes(name)) continue;
        expect(byName(blind).get(name)).toBe(truth.get(name));
        known++;
      }
      const sighted = plan(before, after, namespaces, true);
      expect([byName(sighted), sighted.unknown]).toEqual([truth, []]);
    }),
    { numRuns: 300 },
  );
  expect(known).toBeGreaterThan(200);
});
