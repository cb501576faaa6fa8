import { describe, expect, it } from "vitest";
import { group, sharded, snapshot, subset, table } from "../../test/support/route-table.ts";
import * as slices from "../api/ownership-slice.ts";
import { BUCKETS } from "../kube/place.ts";
import { MAX_OWNER_RESOURCES, MAX_OWNERS } from "../mesh/ownership/place-owners.ts";
import { ownersPage } from "./owners-page.ts";

interface PageOfOwners {
  readonly owners: readonly object[];
  readonly places: readonly { readonly namespace?: string; readonly owners: number; readonly fenced?: true }[];
  readonly next?: string;
  readonly total: number;
}
const read = (of: Parameters<typeof ownersPage>[1], query: Record<string, string> = {}) =>
  ownersPage(new URLSearchParams(query), of) as PageOfOwners;

describe("/debug/owners", () => {
  it("names the owners of each place as an OwnershipSlice does, and what is fenced", () => {
    const of = snapshot(table([subset("v2")], { prod: [], pilot: [0], a: [0] }, { fenced: ["a"] }), { subset: "v2" });
    expect(read(of)).toMatchObject({
      subset: "v2",
      version: 1,
      total: 4,
      owners: [[{ subset: "default" }], [{ subset: "v2" }]],
      places: [
        { clusterScope: true, owners: 0 },
        { namespace: "a", owners: 1, fenced: true },
        { namespace: "pilot", owners: 1 },
        { namespace: "prod", owners: 0 },
      ],
    });
    expect([MAX_OWNERS, MAX_OWNER_RESOURCES]).toEqual([slices.MAX_OWNERS, slices.MAX_OWNER_RESOURCES]);
  });

  it("names buckets by their hashes", () => {
    const of = snapshot(table([sharded(group("", "pods")), subset("s1")], { [BUCKETS[3] ?? ""]: [1] }));
    expect(read(of).places).toEqual([
      { clusterScope: true, owners: 0 },
      { bucket: 3, owners: 1 },
    ]);
  });

  it("has each place on one of its pages, each of which is small, however many places and owners there are", () => {
    const names = Array.from({ length: 5_000 }, (_, at) => `namespace-${at}`);
    const rules = Array.from({ length: 300 }, (_, at) => subset(`s${at}`));
    const of = snapshot(table(rules, Object.fromEntries(names.map((name, at) => [name, [at % 300]]))));
    const found: (string | undefined)[] = [];
    let next: string | undefined;
    do {
      const page = read(of, next === undefined ? {} : { after: next });
      expect(JSON.stringify(page).length).toBeLessThan(100_000);
      found.push(...page.places.map(({ namespace }) => namespace));
      next = page.next;
    } while (next !== undefined);
    expect(found.sort()).toEqual([...names, undefined].sort());
  });

  it("names other clusters behind the places, also on a page of their own", () => {
    const eu = { name: "eu-1", servers: ["eu-1:443"], drainMs: 1, owner: "v2", isFenced: true as const };
    const clusters = [eu, { ...eu, name: "eu-0", owner: "", isFenced: undefined }];
    const of = snapshot(table([], { zoo: [] }), { subset: "v2", clusters });
    const abroad = [
      { cluster: "eu-0", owners: 0 },
      { cluster: "eu-1", owners: 1, fenced: true },
    ];
    expect(read(of)).toMatchObject({ total: 4, owners: [[{ subset: "default" }], [{ subset: "v2" }]] });
    expect(read(of).places).toEqual([{ clusterScope: true, owners: 0 }, { namespace: "zoo", owners: 0 }, ...abroad]);
    expect(read(of, { after: "zoo" }).places).toEqual(abroad);
    expect(read(of, { after: "~eu-0" }).places).toEqual([{ cluster: "eu-1", owners: 0, fenced: true }]);
  });

  it("shows a freeze in its own cluster only", () => {
    const inside = table([], { prod: [] });
    const clusters = ["eu", "us"].map((name) => ({ name, servers: [name], drainMs: 1, owner: "", upstream: { url: name } }));
    const clusterTables = new Map(clusters.map(({ name }) => [name, inside]));
    const frozenPlaces = (...names: string[]) =>
      read(
        snapshot(inside, { clusters, clusterTables, frozen: names.map((namespace) => ({ namespace, reason: "x" })) }),
      ).places.filter((place) => "frozen" in place);
    expect(frozenPlaces("eu/prod")).toEqual([{ cluster: "eu", namespace: "prod", owners: 0, frozen: true }]);
    expect(frozenPlaces("prod")).toEqual([{ namespace: "prod", owners: 0, frozen: true }]);
  });

  it("names the places inside other clusters, not these clusters, on as many pages as it takes", () => {
    const upstream = { url: "https://eu-1.example" };
    const route = (name: string, more: object = {}) => ({ name, servers: [`${name}:443`], drainMs: 1, owner: "", ...more });
    const clusters = [route("eu"), route("eu-1", { upstream }), route("eu.2", { upstream }), route("late", { upstream })];
    const inside = table([subset("v2")], { b: [0], zoo: [], [BUCKETS[3] ?? ""]: [] }, { fenced: ["b"] });
    const many = Array.from({ length: 1_500 }, (_, at) => `n-${at}`);
    const clusterTables = new Map([
      ["eu.2", table([], Object.fromEntries(many.map((name) => [name, []])))],
      ["eu-1", inside],
    ]);
    const of = snapshot(table([], { zoo: [] }), { subset: "v2", clusters, clusterTables });
    const first = read(of);
    expect([first.total, first.places.slice(0, 7)]).toEqual([
      2 + 1 + 4 + 1_501,
      [
        { clusterScope: true, owners: 0 },
        { namespace: "zoo", owners: 0 },
        { cluster: "eu", owners: 0 },
        { cluster: "eu-1", clusterScope: true, owners: 0 },
        { cluster: "eu-1", bucket: 3, owners: 0 },
        { cluster: "eu-1", namespace: "b", owners: 1, fenced: true },
        { cluster: "eu-1", namespace: "zoo", owners: 0 },
      ],
    ]);
    const found = [...first.places];
    for (let { next } = first; next !== undefined; ) {
      const page = read(of, { after: next });
      found.push(...page.places);
      next = page.next;
    }
    expect([found.length, new Set(found.map((place) => JSON.stringify({ ...place, owners: 0 }))).size]).toEqual([1_508, 1_508]);
  });

  it("says that there is no snapshot", () => {
    expect(read(undefined)).toEqual({ snapshot: null });
  });
});
