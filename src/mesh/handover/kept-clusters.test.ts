import { expect, it } from "vitest";
import { appPod, PLAIN_APP, proxyFacts } from "../../../test/support/pod-facts.ts";
import { snapshot, subset, table } from "../../../test/support/route-table.ts";
import { CLUSTER_OBJECTS, CLUSTER_REQUESTS, CLUSTER_SERVERS } from "../contract/route-type.ts";
import { type ClusterRoute, mayReach } from "../ownership/clusters.ts";
import type { Snapshot } from "../ownership/snapshot.ts";
import { viewOf } from "../ownership/view-of.ts";
import { endingClusters, pausedClusters } from "./kept-clusters.ts";
import { planApp } from "./plan-app.ts";
import type { ProxyFacts } from "./proxy-facts.ts";

const TABLE = table([], {});

function cluster(name: string, owner: string): ClusterRoute {
  return { name, servers: [`${name}:443`], drainMs: 60_000, owner };
}

const EU = cluster("eu", "blue");
const EU_BEFORE = cluster("eu", "green");

it("a paused app keeps the owners of its newest routes, unless their subset is gone", () => {
  const routes = (version: number, ...clusters: ClusterRoute[]) => snapshot(TABLE, { version, clusters });
  const known = [routes(1, EU), routes(2, EU_BEFORE), snapshot(TABLE, { version: 3 })];
  expect(pausedClusters([EU, cluster("us", "blue")], known, ["", "blue", "green"], true)).toEqual([
    EU_BEFORE,
    cluster("us", "blue"),
  ]);
  expect(pausedClusters([EU], known, ["", "blue"], true)).toEqual([EU]);
  const [open, openBefore] = [EU, EU_BEFORE].map((each): ClusterRoute => ({ ...each, isOpen: true }));
  expect(pausedClusters(open && [open], [routes(1, openBefore ?? EU)], ["", "blue", "green"], true)).toEqual([openBefore]);
  expect(pausedClusters([EU], [], ["", "blue", "green"], true)).toEqual([EU]);
});

it("a paused app whose rule is removed keeps its clusters, unless its pods knew of none before", () => {
  const routes = (version: number, clusters?: readonly ClusterRoute[]) => snapshot(TABLE, { version, clusters });
  const fenced = { ...EU, isFenced: true as const };
  expect(pausedClusters(undefined, [routes(1, [EU_BEFORE]), routes(2, [fenced])], ["", "blue"], true)).toEqual([EU]);
  expect(pausedClusters(undefined, [routes(1, [EU])], [""], true)).toEqual([cluster("eu", "")]);
  expect(pausedClusters(undefined, [routes(1, [EU]), routes(2)], ["", "blue"], true)).toBeUndefined();
  expect(pausedClusters(undefined, [], ["", "blue"], true)).toBeUndefined();
});

it("an app that ends gives its clusters to the default subset first", () => {
  const fenced = { ...EU, isFenced: true as const };
  expect(endingClusters([snapshot(TABLE, { version: 1, clusters: [fenced] })])).toEqual([cluster("eu", "")]);
  expect(endingClusters([snapshot(TABLE, { version: 1 })])).toEqual([]);
});

const CAPABILITIES = new Set([CLUSTER_OBJECTS, CLUSTER_SERVERS, CLUSTER_REQUESTS]);
const facts = (more: Partial<ProxyFacts>) => proxyFacts({ capabilities: CAPABILITIES, ...more });

/** The plan of an app whose clusters are to go to blue: all of "eu", and the namespace of "us". @param known by pod; others have not reported */
function planOf(isPaused: boolean, owner: "" | "blue", known: Readonly<Record<string, ProxyFacts>>) {
  const us: ClusterRoute = { ...cluster("us", ""), upstream: { url: "https://us" } };
  return planApp({
    ...PLAIN_APP,
    subsets: ["", "blue"],
    isPaused,
    bySpec: TABLE,
    pods: [appPod("d", ""), appPod("b", "blue")],
    factsOf: (key) => known[key.slice(key.lastIndexOf("/") + 1)],
    clusters: [cluster("eu", owner), us],
    clusterTables: new Map([["us", table([subset("blue")], { n1: owner === "blue" ? [0] : [] })]]),
  });
}

/** What pods with the routes may write to. */
function reachOf(routes: Omit<Snapshot, "version"> | undefined): readonly string[] {
  if (routes === undefined) return [];
  const inside = routes.clusterTables?.get("us");
  const owns = inside && viewOf(snapshot(inside, { subset: routes.subset }), "", "configmaps").ownershipOf("n1") === "own";
  return [...(mayReach(routes, "eu:443") ? ["eu"] : []), ...(owns ? ["us/n1"] : [])];
}

it("a pause keeps the owners in other clusters over a failover in which a new pod registers before the old ones", () => {
  const nobody = { d: facts({}), b: facts({}) };
  const before = planOf(false, "", nobody).rules.get("");
  if (before === undefined) throw new Error("the default subset has no routes");
  expect(reachOf(before)).toEqual(["eu", "us/n1"]);
  const first = planOf(true, "blue", { b: facts({}) }).rules.get("blue");
  expect(reachOf(first)).toEqual([]);
  const outstanding = first && { ...first, version: 8 };
  const { rules } = planOf(true, "blue", {
    b: facts({ outstanding, version: 8 }),
    d: facts({ acknowledged: { ...before, version: 7 }, version: 7 }),
  });
  expect([...rules.values()].map(reachOf)).toEqual([["eu", "us/n1"], []]);
});

it("a paused app that has no owners to keep in other clusters follows the spec once all pods have reported", () => {
  const { rules } = planOf(true, "blue", { d: facts({}), b: facts({}) });
  expect([...rules.values()].map(reachOf)).toEqual([[], ["eu", "us/n1"]]);
});
