import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { budget } from "../../../test/support/fuzz.ts";
import { group, limit, readBody, snapshot, subset, table, tableToJson } from "../../../test/support/route-table.ts";
import type { Snapshot } from "../ownership/snapshot.ts";
import { ROUTE } from "./route-type.ts";
import { applyDelta, type TableDelta } from "./table-delta.ts";

const RULES = [limit(), subset("canary"), subset("blue", group("apps"))];
const of = (version: number, members: Record<string, number[]>, fenced: string[] = []): Snapshot =>
  snapshot(table(RULES, members, { fenced }), { version, digest: `d${version}` });

/** The content of a snapshot, independent of the numbers of its classes. */
function meaning({ table: routes, ...rest }: Snapshot) {
  const { classes, ...wire } = tableToJson(routes);
  const members = classes.flatMap((row) => row.places.map((name) => [name, row.rules.join()]));
  return { ...rest, ...wire, members: members.sort() };
}

/**
 * The snapshot with other numbers of its classes and an empty class, as another replica may have built it.
 */
function renumbered(before: Snapshot): Snapshot {
  const { classes, classOf } = before.table;
  const members = [...classOf].map(([name, index]) => [name, classes.length - index] as const);
  return { ...before, table: { ...before.table, classes: [[0, 2], ...[...classes].reverse()], classOf: new Map(members) } };
}

function problemsWith(base: Snapshot, delta: TableDelta): readonly string[] {
  const problems: string[] = [];
  applyDelta(base.table, delta, problems);
  return problems;
}

/** The delta as bytes. */
function diffSnapshots(base: Snapshot, next: Snapshot): Uint8Array | undefined {
  return ROUTE.delta?.encode(base, next);
}
function applied(base: Snapshot, delta: Uint8Array, next: Snapshot): Snapshot {
  const result = ROUTE.delta?.apply(base, delta, next);
  if (result === undefined) throw new Error("routes have no deltas");
  return result;
}

const NOTHING: TableDelta = { classes: [], removed: [], fenced: [], unfenced: [] };
const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`ns-${index}`, [index % 3]]));

describe("the difference between two snapshots", () => {
  it("turns one into the other, for any two tables and any numbers of the base's classes", () => {
    const name = fc.constantFrom(..."abcdefghijklmnopqrst");
    const classes = fc.subarray([0, 1, 2]);
    const names = fc.uniqueArray(name, { maxLength: 5 });
    const routes = fc.record({ members: fc.dictionary(name, classes, { minKeys: 8 }), fenced: names });
    const edit = fc.record({ members: fc.dictionary(name, classes, { maxKeys: 5 }), removed: names, fenced: names });
    let deltas = 0;
    fc.assert(
      fc.property(routes, edit, (one, { members, removed, fenced }) => {
        const edited = Object.entries({ ...one.members, ...members }).filter(([key]) => !removed.includes(key));
        const [base, next] = [of(1, one.members, one.fenced), of(2, Object.fromEntries(edited), fenced)];
        const delta = diffSnapshots(base, next);
        if (delta === undefined) return;
        deltas++;
        for (const start of [base, renumbered(base)]) {
          const result = applied(start, delta, next);
          expect(meaning(result)).toEqual(meaning(next));
        }
      }),
      budget(1_000),
    );
    expect(deltas).toBeGreaterThan(0);
  });

  it("has a few dozen bytes for one namespace among 10,000, and the result shares all other parts with its base", () => {
    const [base, next] = [of(1, many), of(2, { ...many, "ns-5": [1] })];
    const delta = diffSnapshots(base, next);
    if (delta === undefined) throw new Error("a delta was expected");
    expect(readBody(delta)).toEqual({
      classes: [{ rules: [1], places: ["ns-5"] }],
      removed: [],
      fenced: [],
      unfenced: [],
    });
    expect(delta.length).toBeLessThan(100);
    const after = applied(base, delta, next);
    expect(after).toMatchObject({ version: 2, digest: "d2" });
    expect(after.table.rules).toBe(base.table.rules);
    expect(after.table.fenced).toBe(base.table.fenced);
    expect(after.table.sharedResources).toBe(base.table.sharedResources);
    const fenced = { ...base, version: 3, table: { ...base.table, fenced: new Set(["ns-1"]) } };
    const fence = diffSnapshots(base, fenced);
    expect(fence && applied(base, fence, fenced).table.classOf).toBe(base.table.classOf);
  });

  it.each<[string, Partial<Snapshot>]>([
    ["the subset", { subset: "canary" }],
    ["the pod's namespace", { podNamespace: "other" }],
    ["the app", { app: { namespace: "shop", name: "other" } }],
    ["the lock", { lockName: "" }],
    ["the callers", { callers: { userAgent: "x", defaultOnlyUserAgents: [], stripManagedFields: false } }],
    ["the guard", { guard: "Warn" }],
    ["the rules", { table: { ...of(2, many).table, rules: [...RULES].reverse() } }],
    ["the shared resources", { table: { ...of(2, many).table, sharedResources: [group("")] } }],
    ["the retained namespaces", { table: { ...of(2, many).table, retained: [{ namespaces: new Set(["x"]), rules: [] }] } }],
  ])("cannot express a change of %s", (_, change) => {
    expect(diffSnapshots(of(1, many), { ...of(2, many), ...change })).toBeUndefined();
  });

  it("compares parts by content, not by identity", () => {
    const retained = () => [{ namespaces: new Set(["y", "x"]), rules: [{ resources: [group("")], visible: true }] }];
    const copy = () => {
      const { table: routes, ...rest } = of(1, many);
      return {
        ...rest,
        table: { ...routes, rules: [limit(), subset("canary"), subset("blue", group("apps"))], retained: retained() },
      };
    };
    expect(diffSnapshots(copy(), copy())).toEqual(Buffer.from(JSON.stringify(NOTHING)));
  });

  it("is undefined if the whole table is as short", () => {
    expect(diffSnapshots(of(1, { a: [0], b: [1] }), of(2, { c: [0], d: [1] }))).toBeUndefined();
    expect(diffSnapshots(of(1, {}), of(2, { c: [0] }))).toBeUndefined();
  });

  it("is refused if it does not fit its base, with every field that does not fit", () => {
    const base = of(1, { a: [0], b: [1] }, ["a"]);
    expect(problemsWith(base, NOTHING)).toEqual([]);
    expect(() => applied(base, Buffer.from(JSON.stringify(NOTHING)), { ...base, version: 0, digest: "" })).toThrow(
      "version: 0 is not positive; digest: missing",
    );
    expect(
      problemsWith(base, {
        classes: [
          { rules: [3], places: ["c", "b"] },
          { rules: [], places: ["c"] },
        ],
        removed: ["b", "z"],
        fenced: ["a", "b", "b"],
        unfenced: ["b", "c"],
      }),
    ).toEqual([
      "classes.0.rules: 3 is no rule, there are 3",
      'classes.1.places: "c" is named twice',
      'removed: "b" is named twice',
      'removed: "z" is not known',
      'fenced: "a" is fenced already',
      'fenced: "b" is named twice',
      'unfenced: "b" is named twice',
      'unfenced: "c" is not fenced',
    ]);
  });

  it("contains no rows for removed classes", () => {
    let base = of(1, many);
    for (let version = 2; version < 10; version++) {
      const members = version % 2 === 0 ? { ...many, extra: [0, 1] } : many;
      const next = of(version, members);
      const delta = diffSnapshots(base, next);
      if (delta === undefined) throw new Error("a delta was expected");
      base = applied(base, delta, next);
    }
    expect(base.table.classes.length).toBe(3);
    expect(tableToJson(base.table).classes.map((row) => row.places.length)).toEqual([3334, 3333, 3333]);
  });
});
