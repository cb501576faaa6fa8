// Plans over the namespaces of home and of other clusters together: the limit of moves, a pause, and clusters that the manager cannot read.
import { describe, expect, it } from "vitest";
import { appPod, PLAIN_APP, proxyFacts } from "../../../test/support/pod-facts.ts";
import { snapshot, subset, table, unreportedFence } from "../../../test/support/route-table.ts";
import type { ClusterRoute } from "../ownership/clusters.ts";
import type { Snapshot } from "../ownership/snapshot.ts";
import { namespacesOf, type RouteTable } from "../ownership/table.ts";
import { ownersHash } from "./paused.ts";
import { planApp } from "./plan-app.ts";
import type { TableByNames } from "./plan-cluster-tables.ts";

const { app: APP } = PLAIN_APP;
const SUBSETS = ["", "blue", "green"];
const EU: ClusterRoute = {
  name: "eu",
  servers: ["eu:443"],
  drainMs: 60_000,
  owner: "blue",
  upstream: { url: "https://eu" },
};
const names = (count: number) => Array.from({ length: count }, (_, at) => `ns-${at}`);
/** The first namespaces belong to green, the others to blue. */
const owned = (all: number, green: number): RouteTable =>
  table([subset("blue"), subset("green")], Object.fromEntries(names(all).map((name, at) => [name, at < green ? [1] : [0]])));

interface Wish {
  readonly home: RouteTable;
  readonly eu: RouteTable | undefined;
  readonly cluster?: ClusterRoute;
}

const HELD: Wish = { home: owned(10, 0), eu: owned(10, 0) };

function snapshotOf({ home, eu }: Wish, version: number): Snapshot {
  const app = { app: APP, podNamespace: "shop", version };
  return snapshot(home, { ...app, clusters: [EU], ...(eu && { clusterTables: new Map([["eu", eu]]) }) });
}

interface More {
  readonly limit?: number;
  readonly isPaused?: boolean;
  readonly keptSubsets?: string[];
  readonly held?: readonly Snapshot[];
  readonly subsets?: readonly string[];
  readonly byNames?: TableByNames;
}

function plan(wish: Wish, more: More = {}) {
  const { limit, isPaused = false, keptSubsets, held = [snapshotOf(HELD, 7)] } = more;
  const pods = held.map((_, at) => appPod(`pod-${at}`, "blue"));
  return planApp({
    ...PLAIN_APP,
    pods,
    factsOf: (key) => proxyFacts({ acknowledged: held[pods.findIndex(({ name }) => key.endsWith(name))] }),
    subsets: more.subsets ?? SUBSETS,
    tableByNames: more.byNames,
    bySpec: wish.home,
    clusters: [wish.cluster ?? EU],
    clusterTables: new Map(wish.eu ? [["eu", wish.eu]] : []),
    ownersHashes: [ownersHash(HELD.home)],
    maxMovingPercent: limit,
    keptSubsets,
    isPaused,
  });
}

describe("the limit of moves", () => {
  it("keeps all namespaces with their owners if too many of home and of the clusters together would move", () => {
    const wish: Wish = { home: owned(10, 1), eu: owned(10, 5) };
    const { kept, needsConfirmation, desired, clusterTables } = plan(wish, { limit: 20 });
    expect([kept, needsConfirmation]).toEqual([6, true]);
    expect(desired).toEqual(HELD.home);
    expect(clusterTables?.get("eu")).toEqual(HELD.eu);
  });

  it("lets pass what is not more, and what is confirmed", () => {
    const wish: Wish = { home: owned(10, 1), eu: owned(10, 5) };
    for (const limit of [30, undefined]) {
      const { kept, needsConfirmation, clusterTables } = plan(wish, limit === undefined ? {} : { limit });
      expect([kept, needsConfirmation]).toEqual([0, false]);
      expect(clusterTables?.get("eu")).toEqual(wish.eu);
    }
  });

  it("also keeps them if too many of home alone would move, so that a large cluster hides nothing", () => {
    const held = [snapshotOf({ home: HELD.home, eu: owned(1_000, 0) }, 7)];
    const { kept, needsConfirmation } = plan({ home: owned(10, 10), eu: owned(1_000, 0) }, { limit: 20, held });
    expect([kept, needsConfirmation]).toEqual([10, true]);
  });

  it("moves nothing in clusters whose namespaces are not known", () => {
    const { kept, clusterTables } = plan({ home: owned(10, 2), eu: undefined }, { limit: 20 });
    expect([kept, clusterTables?.get("eu")]).toEqual([0, HELD.eu]);
  });

  it("does not keep namespaces of clusters with a shard that is lost", () => {
    const wish: Wish = { home: owned(10, 10), eu: owned(10, 10) };
    const { kept, needsConfirmation, clusterTables } = plan(wish, { limit: 10, keptSubsets: ["", "green"] });
    expect([kept, needsConfirmation]).toEqual([0, false]);
    expect(clusterTables?.get("eu")).toEqual(wish.eu);
  });

  it("keeps what is in no namespace of the cluster with its owner, too", () => {
    const wish: Wish = { home: owned(10, 10), eu: owned(10, 10), cluster: { ...EU, owner: "green" } };
    const { rules } = plan(wish, { limit: 20 });
    expect(rules.get("blue")?.clusters).toMatchObject([{ name: "eu", owner: "blue" }]);
  });
});

describe("a pause", () => {
  it("counts the namespaces of clusters that it keeps", () => {
    const { kept, needsConfirmation, clusterTables } = plan({ home: owned(10, 1), eu: owned(10, 5) }, { isPaused: true });
    expect([kept, needsConfirmation, clusterTables?.get("eu")]).toEqual([6, false, HELD.eu]);
  });

  it("does not take the table of a pod that got it while others had not reported", () => {
    const early = table([subset("blue"), subset("green"), unreportedFence()], { "ns-0": [1, 2] });
    const held = [snapshotOf(HELD, 7), snapshotOf({ home: HELD.home, eu: early }, 8)];
    const { clusterTables } = plan({ home: HELD.home, eu: owned(10, 5) }, { isPaused: true, held });
    expect(clusterTables?.get("eu")).toEqual(HELD.eu);
  });
});

describe("a cluster that the manager does not read", () => {
  const unread: Wish = { home: owned(10, 10), eu: undefined };
  const toGreen: TableByNames = (_, inForce) => owned(namespacesOf(inForce).length, inForce.classOf.size);

  it("loses no owner, and gives the namespaces of a subset that is gone to those that the names say", () => {
    const subsets = ["", "green"];
    expect(plan(unread, { subsets }).clusterTables?.get("eu")).toEqual(HELD.eu);
    expect(plan(unread, { subsets, byNames: toGreen }).clusterTables?.get("eu")).toEqual(owned(10, 10));
    expect(plan(unread, { subsets, byNames: () => undefined }).clusterTables?.get("eu")).toEqual(HELD.eu);
  });

  it("moves nothing during a pause, and counts for the limit", () => {
    const paused = plan(unread, { isPaused: true, byNames: toGreen });
    expect([paused.kept, paused.clusterTables?.get("eu")]).toEqual([20, HELD.eu]);
    const over = plan({ home: owned(10, 0), eu: undefined }, { limit: 20, byNames: toGreen });
    expect([over.needsConfirmation, over.clusterTables?.get("eu")]).toEqual([true, HELD.eu]);
  });

  it("compute a paused cluster again only when its namespaces, its owners or the subsets change", () => {
    const wish = { home: owned(10, 0), eu: owned(10, 4) };
    const held = [snapshotOf(HELD, 7)];
    const paused = (more: More = {}) => plan(wish, { isPaused: true, held, ...more }).clusterTables?.get("eu");
    const first = paused();
    expect(paused()).toBe(first);
    expect(paused({ held: [snapshotOf({ home: owned(10, 0), eu: first }, 8)] })).toBe(first);
    expect(paused({ subsets: ["", "green"] })).not.toEqual(paused());
    expect(paused({ held: [snapshotOf({ home: owned(10, 0), eu: owned(10, 2) }, 7)] })).not.toEqual(paused());
  });
});
