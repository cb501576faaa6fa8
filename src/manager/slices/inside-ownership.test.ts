import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { snapshot, subset, table } from "../../../test/support/route-table.ts";
import { MAX_PLACES, MAX_SLICE_TABLES, ownershipSliceKind } from "../../api/ownership-slice.ts";
import { MAX_CLUSTER_TABLES } from "../../mesh/contract/cluster-tables.ts";
import type { Wait } from "../../mesh/handover/plan-fences.ts";
import type { ClusterRoute } from "../../mesh/ownership/clusters.ts";
import { ownersIn, shownOwners } from "../../mesh/ownership/place-owners.ts";
import type { RouteTable } from "../../mesh/ownership/table.ts";
import type { OwnershipPlan } from "../apps/published-plans.ts";
import { clustersWithoutOwners, ownershipInside } from "./inside-ownership.ts";
import { AT_HOME, type OwnedParts, packParts } from "./pack-parts.ts";
import type { Slice } from "./pack-slices.ts";
import { ownershipByPlace } from "./place-ownership.ts";
import { readSlice, sliceObject } from "./slice-object.ts";

const NOON = "2026-11-27T12:00:00Z";
const HOME = table([subset("v2")], { a: [], "team-a": [0], "": [] });

/** @param fenced the places that v2 does not have yet, by cluster */
function planOf(
  clusterTables: ReadonlyMap<string, RouteTable>,
  fenced: Readonly<Record<string, readonly string[]>> = {},
  waits: Readonly<Record<string, readonly Wait[]>> = {},
): OwnershipPlan {
  const fencedTables = new Map([...clusterTables].map(([name, each]) => [name, withFenced(each, fenced[name])]));
  const rulesFor = (name: string) => ({
    ...snapshot(HOME, { subset: name }),
    clusterTables: name === "v2" ? fencedTables : clusterTables,
  });
  const rules = new Map(["", "v2"].map((name) => [name, rulesFor(name)])) as OwnershipPlan["rules"];
  const clusterTableWaits = new Map(Object.entries(waits));
  return { desired: HOME, subsets: ["", "v2"], rules, digest: "", waits: [], clusterTables, clusterTableWaits };
}

const withFenced = (of: RouteTable, fenced: readonly string[] = []): RouteTable =>
  fenced.length === 0 ? of : { ...of, fenced: new Set(fenced) };
const withFence = (plan: OwnershipPlan, cluster: string, fenced: readonly string[]): OwnershipPlan => {
  const of = (tables: ReadonlyMap<string, RouteTable> = new Map()) =>
    new Map([...tables].map(([name, each]) => [name, name === cluster ? withFenced(each, fenced) : each]));
  return {
    ...plan,
    rules: new Map([...plan.rules].map(([name, each]) => [name, { ...each, clusterTables: of(each.clusterTables) }])),
  };
};
const placesOf = (plan: OwnershipPlan) =>
  Object.fromEntries([...ownershipInside(plan).values()].flatMap((places) => [...places]));
const partsOf = (plan: OwnershipPlan) => new Map([[AT_HOME, ownershipByPlace(plan)], ...ownershipInside(plan)]);

const wait = (of: string | undefined, ...namespaces: string[]): Wait => ({
  podName: "p",
  subset: of,
  cause: "holds",
  namespaces,
  to: ["v2"],
});
const nextName = (taken: ReadonlySet<string>) => `s-${[...Array(99).keys()].find((at) => !taken.has(`s-${at}`))}`;
const app = { ref: { kind: "VirtualApp", namespace: "ops", name: "shop" }, object: { metadata: {} } } as never;
const kind = { group: "", version: "v1", kind: "VirtualApp" } as never;
/** As the API server stores it. */
const stored = (slice: Slice) => ownershipSliceKind.schema.parse(JSON.parse(JSON.stringify(sliceObject(app, kind, slice, {}))));

describe("the ownership inside other clusters", () => {
  it("is that of the cluster's table, whatever namespaces of this name at home have", () => {
    const eu = table([subset("v2")], { a: [0], "team-a": [], "": [] });
    expect(placesOf(planOf(new Map([["eu-1", eu]])))).toEqual({
      "inside/eu-1/": { state: "Owned", owners: [{ subset: "default" }] },
      "inside/eu-1/a": { state: "Owned", owners: [{ subset: "v2" }] },
      "inside/eu-1/team-a": { state: "Owned", owners: [{ subset: "default" }] },
    });
  });

  it("names the subsets whose pods may still write there, and is Fenced while they are not known", () => {
    const eu = table([subset("v2")], { a: [0], b: [0], c: [0] });
    const fenced = { "eu-1": ["a"], "us-1": ["a"] };
    const plan = planOf(
      new Map([
        ["eu-1", eu],
        ["us-1", eu],
      ]),
      fenced,
      { "eu-1": [wait("", "a")], "us-1": [wait(undefined, "a")] },
    );
    const ownership = placesOf(plan);
    expect(ownership["inside/eu-1/a"]).toEqual({ state: "Moving", owners: [{ subset: "v2" }], from: ["default"] });
    expect(ownership["inside/us-1/a"]).toEqual({ state: "Fenced", owners: [{ subset: "v2" }] });
    expect(ownership["inside/eu-1/b"]?.state).toBe("Owned");
  });

  it("is the same object while nothing has changed there, and a new one when fences or waits have", () => {
    const [eu, us] = [table([subset("v2")], { a: [0] }), table([subset("v2")], { a: [0] })];
    const tables = new Map([
      ["eu-1", eu],
      ["us-1", us],
      ["twin", eu],
    ]);
    const fenced = withFence(planOf(tables), "us-1", ["a"]);
    const [first, next] = [ownershipInside(planOf(tables)), ownershipInside(fenced)];
    expect(next.get("eu-1")).toBe(first.get("eu-1"));
    expect([...(next.get("twin")?.keys() ?? [])]).toContain("inside/twin/a");
    expect([first, next].map((each) => each.get("us-1")?.get("inside/us-1/a")?.state)).toEqual(["Owned", "Fenced"]);
    const waiting = ownershipInside({ ...fenced, clusterTableWaits: new Map([["us-1", [wait("", "a")]]]) });
    expect(waiting.get("us-1")?.get("inside/us-1/a")?.state).toBe("Moving");
  });

  it("is Frozen where the app has frozen a namespace of this cluster, and no other object changes", () => {
    const [eu, us] = [table([subset("v2")], { a: [0], b: [] }), table([subset("v2")], { a: [0] })];
    const plan = planOf(
      new Map([
        ["eu-1", eu],
        ["us-1", us],
      ]),
    );
    const frozen = ["eu-1/a", "eu-1/c", "b"].map((namespace) => ({ namespace, reason: "restore" }));
    const rules = new Map([...plan.rules].map(([name, each]) => [name, { ...each, frozen }]));
    const [first, next] = [ownershipInside(plan), ownershipInside({ ...plan, rules })];
    const states = [...(next.get("eu-1") ?? [])].map(([place, { state }]) => [place, state]);
    expect(states).toEqual([
      ["inside/eu-1/", "Owned"],
      ["inside/eu-1/a", "Frozen"],
      ["inside/eu-1/b", "Owned"],
    ]);
    expect(next.get("us-1")).toBe(first.get("us-1"));
    expect(ownershipInside(plan).get("eu-1")?.get("inside/eu-1/a")?.state).toBe("Owned");
  });

  it("is not known while neither the cluster nor a pod has named its namespaces", () => {
    const route = (name: string, upstream?: ClusterRoute["upstream"]): ClusterRoute => ({
      name,
      servers: [`${name}:443`],
      drainMs: 1,
      owner: "",
      upstream,
    });
    const plan = planOf(new Map([["eu-1", HOME]]));
    const clusters = [route("eu-1", { url: "https://eu-1" }), route("eu-2", { url: "https://eu-2" }), route("whole")];
    const rules = new Map([...plan.rules].map(([name, each]) => [name, { ...each, clusters }]));
    expect(clustersWithoutOwners({ ...plan, rules })).toEqual(["eu-2"]);
  });

  it("is published in fields that readers of namespaces at home do not read", () => {
    const plan = planOf(new Map([["eu-1", table([subset("v2")], { b: [0], "#3": [0], "": [0] })]]));
    const { written } = packParts([], partsOf(plan), NOON, () => false, nextName);
    const [home, eu, ...others] = written.map(stored);
    expect([home?.places, eu?.places, others]).toEqual([3, 3, []]);
    expect(home?.ownership.some(({ insideClusters }) => insideClusters !== undefined)).toBe(false);
    expect(eu?.ownership).toEqual([
      {
        state: "Owned",
        owners: [{ subset: "v2" }],
        since: NOON,
        insideClusters: [{ cluster: "eu-1", namespaces: ["b"], buckets: [3], clusterScope: true }],
      },
    ]);
    expect(eu && readSlice(eu).entries.map(({ places }) => places)).toEqual([
      ["inside/eu-1/b", "inside/eu-1/#3", "inside/eu-1/"],
    ]);
  });

  it("has room for all clusters that an app may divide", () => {
    expect(MAX_SLICE_TABLES).toBe(MAX_CLUSTER_TABLES);
  });
});

/** Namespaces of a cluster appear, disappear, and get another owner, in blocks or alone. */
const change = fc.record({
  cluster: fc.constantFrom("eu-1", "eu-2", "us-1.example"),
  from: fc.nat({ max: 1_400 }),
  count: fc.oneof(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 1_500 })),
  to: fc.option(fc.constantFrom(0, 1, 2), { nil: undefined }),
});

it("after any moves in any clusters, the slices tell exactly the owners in force, and only those are written that a move touches", () => {
  const ruleOf = [[], [0], [1]];
  fc.assert(
    fc.property(fc.array(change, { maxLength: 8 }), (changes) => {
      const members = new Map<string, Map<string, number>>();
      let packed: OwnedParts = new Map();
      let last = new Map<string, RouteTable>();
      let objects = new Map<string, ReturnType<typeof stored>>();
      for (const { cluster, from, count, to } of changes) {
        const before = structuredClone(members);
        const ofCluster = members.get(cluster) ?? new Map<string, number>();
        members.set(cluster, ofCluster);
        for (let at = from; at < from + count; at++) {
          if (to === undefined) ofCluster.delete(`ns-${at}`);
          else ofCluster.set(`ns-${at}`, to);
        }
        const tables = new Map(
          [...members].map(([name, each]) => {
            const rows = Object.fromEntries([...each].map(([place, rule]) => [place, ruleOf[rule] ?? []]));
            return [name, table([subset("v2"), subset("v3")], { ...rows, "": [] })];
          }),
        );
        for (const [name, each] of last) if (name !== cluster) tables.set(name, each); // as the compiler does
        last = tables;
        const previous = [...objects.values()].map(readSlice);
        const parts = ownershipInside(planOf(tables));
        const isPacked = (part: string) => packed.get(part) === parts.get(part);
        const { written, deleted } = packParts(previous, parts, NOON, isPacked, nextName);
        packed = parts;
        objects = new Map([...objects, ...written.map((slice) => [slice.name, stored(slice)] as const)]);
        for (const name of deleted) objects.delete(name);

        const was = before.get(cluster) ?? new Map<string, number>();
        const moved = [...new Set([...was.keys(), ...ofCluster.keys()])].filter((name) => was.get(name) !== ofCluster.get(name));
        const isNew = !before.has(cluster); // then its cluster scope is a place too
        expect(written.length + deleted.length).toBeLessThanOrEqual(2 * (moved.length + Number(isNew)));
        expectExactly([...objects.values()], tables);
      }
    }),
    { numRuns: 20 },
  );
}, 60_000);

function expectExactly(objects: readonly ReturnType<typeof stored>[], tables: ReadonlyMap<string, RouteTable>): void {
  const told = objects.flatMap(({ ownership }) =>
    ownership.flatMap(({ owners, insideClusters = [] }) =>
      insideClusters.flatMap(({ cluster, namespaces = [], clusterScope }) =>
        [...namespaces, ...(clusterScope ? [""] : [])].map((place) => [`${cluster}/${place}`, JSON.stringify(owners)] as const),
      ),
    ),
  );
  const inForce = [...tables].flatMap(([cluster, each]) =>
    [...each.classOf.keys()].map((place) => [`${cluster}/${place}`, JSON.stringify(shownOwners(ownersIn(each, place)))] as const),
  );
  expect(told.toSorted()).toEqual(inForce.toSorted());
  for (const object of objects) expect(object.places).toBeLessThanOrEqual(MAX_PLACES);
  const needed = [...tables.values()].map(({ classOf }) => 2 * Math.ceil(classOf.size / MAX_PLACES));
  expect(objects.length).toBeLessThanOrEqual(needed.reduce((sum, each) => sum + each, 0));
}
