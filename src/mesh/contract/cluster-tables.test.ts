import { expect, it } from "vitest";
import { snapshot, subset, table } from "../../../test/support/route-table.ts";
import type { ClusterTables, Snapshot } from "../ownership/snapshot.ts";
import { ResourceInvalidError } from "./resource-type.ts";
import { ROUTE, routeDigest } from "./route-type.ts";

const namespaces = (owned: readonly string[]) =>
  Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`ns-${at}`, owned.includes(`ns-${at}`) ? [0] : []]));
const tableOf = (...owned: string[]) => table([subset("canary")], namespaces(owned));
const home = table([subset("canary")], namespaces(["ns-1"]));
const routeOf = (clusterTables: ClusterTables | undefined, version = 1): Snapshot => {
  const content = snapshot(home, { subset: "canary", clusterTables });
  return { ...content, version, digest: routeDigest(content) };
};
const base = routeOf(new Map(Object.entries({ eu: tableOf("ns-1"), us: tableOf("ns-2") })));
const deltaTo = (next: Snapshot) => ROUTE.delta?.encode(base, next);

it.each([
  [
    "moves",
    new Map([
      ["eu", tableOf("ns-3")],
      ["us", tableOf("ns-2")],
    ]),
  ],
  [
    "gets other rules",
    new Map([
      ["eu", table([subset("blue")], namespaces([]))],
      ["us", tableOf("ns-2")],
    ]),
  ],
  [
    "is new",
    new Map([
      ["eu", tableOf("ns-1")],
      ["us", tableOf("ns-2")],
      ["asia", tableOf()],
    ]),
  ],
  ["is gone", new Map([["us", tableOf("ns-2")]])],
  ["and all others are gone", undefined],
])("a delta is enough if a cluster's table %s", (_, tables) => {
  const next = routeOf(tables, 2);
  const delta = deltaTo(next);
  expect(delta && routeDigest(ROUTE.delta?.apply(base, delta, next) ?? base)).toBe(next.digest);
});

it("a move in one cluster sends nothing of the tables of the others, and of its own table only the move", () => {
  const tables = new Map(base.clusterTables).set("eu", tableOf("ns-1", "ns-3"));
  const text = Buffer.from(deltaTo(routeOf(tables, 2)) ?? []).toString();
  expect(text.match(/ns-\d+/g)).toEqual(["ns-3"]);
});

it("a delta for a base without the cluster is refused, so that the whole route is sent", () => {
  const next = routeOf(new Map(Object.entries({ eu: tableOf("ns-1"), us: tableOf("ns-3") })), 2);
  const delta = deltaTo(next) ?? new Uint8Array();
  expect(() => ROUTE.delta?.apply(routeOf(undefined), delta, next)).toThrow(ResourceInvalidError);
});
