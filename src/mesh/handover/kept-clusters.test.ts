import { expect, it } from "vitest";
import { snapshot, table } from "../../../test/support/route-table.ts";
import type { ClusterRoute } from "../ownership/clusters.ts";
import { endingClusters, pausedClusters } from "./kept-clusters.ts";

const TABLE = table([], {});

function cluster(name: string, owner: string): ClusterRoute {
  return { name, servers: [`${name}:443`], drainMs: 60_000, owner };
}

const EU = cluster("eu", "blue");
const EU_BEFORE = cluster("eu", "green");

it("a paused app keeps the owners of its newest routes, unless their subset is gone", () => {
  const routes = (version: number, ...clusters: ClusterRoute[]) => snapshot(TABLE, { version, clusters });
  const known = [routes(1, EU), routes(2, EU_BEFORE), snapshot(TABLE, { version: 3 })];
  expect(pausedClusters([EU, cluster("us", "blue")], known, ["", "blue", "green"])).toEqual([EU_BEFORE, cluster("us", "blue")]);
  expect(pausedClusters([EU], known, ["", "blue"])).toEqual([EU]);
  const [open, openBefore] = [EU, EU_BEFORE].map((each): ClusterRoute => ({ ...each, isOpen: true }));
  expect(pausedClusters(open && [open], [routes(1, openBefore ?? EU)], ["", "blue", "green"])).toEqual([openBefore]);
  expect(pausedClusters([EU], [], ["", "blue", "green"])).toEqual([EU]);
});

it("a paused app whose rule is removed keeps its clusters, unless its pods knew of none before", () => {
  const routes = (version: number, clusters?: readonly ClusterRoute[]) => snapshot(TABLE, { version, clusters });
  const fenced = { ...EU, isFenced: true as const };
  expect(pausedClusters(undefined, [routes(1, [EU_BEFORE]), routes(2, [fenced])], ["", "blue"])).toEqual([EU]);
  expect(pausedClusters(undefined, [routes(1, [EU])], [""])).toEqual([cluster("eu", "")]);
  expect(pausedClusters(undefined, [routes(1, [EU]), routes(2)], ["", "blue"])).toBeUndefined();
  expect(pausedClusters(undefined, [], ["", "blue"])).toBeUndefined();
});

it("an app that ends gives its clusters to the default subset first", () => {
  const fenced = { ...EU, isFenced: true as const };
  expect(endingClusters([snapshot(TABLE, { version: 1, clusters: [fenced] })])).toEqual([cluster("eu", "")]);
  expect(endingClusters([snapshot(TABLE, { version: 1 })])).toEqual([]);
});
