import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { tableHash } from "../../../mesh/contract/table-json.ts";
import type { RouteTable } from "../../../mesh/ownership/table.ts";
import { buildTable, type EarlierTable } from "./build-table.ts";
import type { NamespaceFacts, RouteSpec } from "./route-spec.ts";

/** Rule 0 contains names with an "a", rule 1 namespaces with the label tier=gold. */
function routeWith(judged: string[] = []): RouteSpec {
  return {
    rules: ["x", "y"].map((subset) => ({ kind: "subset", subset, resources: [], origin: "" }) as const),
    sharedResources: [],
    places: [],
    expressions: ["a"],
    membersOf({ name, labels }, matches) {
      judged.push(name);
      return [...(matches("a", name) ? [0] : []), ...(labels.tier === "gold" ? [1] : [])];
    },
  };
}

function build(route: RouteSpec, namespaces: readonly NamespaceFacts[], earlier?: EarlierTable): RouteTable {
  const table = buildBounded(route, namespaces, earlier);
  if (table === undefined) throw new Error("too large");
  return table;
}

function buildBounded(route: RouteSpec, namespaces: readonly NamespaceFacts[], earlier?: EarlierTable): RouteTable | undefined {
  const steps = buildTable(route, namespaces, (expression, name) => name.includes(expression), earlier);
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

const membersIn = ({ classes, classOf }: RouteTable) => [...classOf].map(([name, at]) => [name, classes[at]]);
const plain = (...names: string[]) => names.map((name) => ({ name, labels: {} }));

describe("buildTable", () => {
  it("puts namespaces with the same rules into one class", () => {
    const table = build(routeWith(), plain("a", "b", "ab"));
    expect(membersIn(table)).toEqual([
      ["a", [0]],
      ["b", []],
      ["ab", [0]],
    ]);
    expect(table.classes).toHaveLength(2);
  });

  it("ends a table with so many rules in so many classes that it would take tens of megabytes", () => {
    const half = (seed: number) => Array.from({ length: 2_000 }, (_, rule) => 2 * rule + ((seed >> (rule % 12)) & 1));
    const route = { ...routeWith(), membersOf: ({ name }: NamespaceFacts) => half(Number(name)) };
    const numbered = (count: number) => plain(...Array.from({ length: count }, (_, i) => String(i)));
    expect(buildBounded(route, numbered(60))?.classes.length).toBe(60);
    expect(buildBounded(route, numbered(70))).toBeUndefined();
    const same = { ...routeWith(), membersOf: () => half(0) };
    expect(buildBounded(same, numbered(200))?.classes.length).toBe(1);
  });

  it("judges only what has changed, and returns the earlier table if nothing differs", () => {
    const table = build(routeWith(), plain("a", "b"));
    const judged: string[] = [];
    const earlier = { table, gone: [] };
    expect(build(routeWith(judged), plain("b"), earlier)).toBe(table);
    expect(judged).toEqual(["b"]);
    expect(membersIn(build(routeWith(judged), plain("ca"), earlier))).toContainEqual(["ca", [0]]);
    expect(judged).toEqual(["b", "ca"]);
  });

  it("ends a table that outgrows the memory by one namespace after the other", () => {
    const half = (seed: number) => Array.from({ length: 2_000 }, (_, rule) => 2 * rule + ((seed >> (rule % 12)) & 1));
    const route = { ...routeWith(), membersOf: ({ name }: NamespaceFacts) => half(Number(name)) };
    let table: RouteTable | undefined = build(route, []);
    let count = 0;
    for (; table !== undefined && count < 100; count++) table = buildBounded(route, plain(String(count)), { table, gone: [] });
    expect([table, count]).toEqual([undefined, 66]);
  });

  it("makes the same table step by step as at once, whatever is born, dies and changes", () => {
    const facts = fc.uniqueArray(
      fc.record({
        name: fc.stringMatching(/^[ab]{1,3}$/),
        labels: fc.constantFrom<NamespaceFacts["labels"]>({}, { tier: "gold" }),
      }),
      { selector: ({ name }) => name, maxLength: 8 },
    );
    fc.assert(
      fc.property(fc.array(facts, { minLength: 1, maxLength: 6 }), (states) => {
        let table: RouteTable | undefined;
        let before: readonly NamespaceFacts[] = [];
        for (const after of states) {
          const tierBefore = new Map(before.map(({ name, labels }) => [name, labels.tier ?? "none"]));
          const changed = after.filter(({ name, labels }) => tierBefore.get(name) !== (labels.tier ?? "none"));
          const names = new Set(after.map(({ name }) => name));
          const gone = before.flatMap(({ name }) => (names.has(name) ? [] : [name]));
          table = table === undefined ? build(routeWith(), after) : build(routeWith(), changed, { table, gone });
          const fresh = build(routeWith(), after);
          expect(new Map(membersIn(table) as [string, readonly number[]][])).toEqual(
            new Map(membersIn(fresh) as [string, readonly number[]][]),
          );
          expect(table.classes.length).toBe(fresh.classes.length);
          expect(tableHash(table)).toEqual(tableHash(fresh));
          before = after;
        }
      }),
    );
  });
});
