// The enforcer of the routes at home, and one for each other cluster whose requests the proxy serves: each judges requests by the
// route table of its own API server. Invariant: routes are acknowledged only when no write is in flight that they refuse, in any of
// the clusters. A cluster without a table in the routes is closed, so all its writes count as refused.
import { isDeepStrictEqual } from "node:util";
import { frozenInside } from "../../mesh/ownership/frozen-places.ts";
import type { Snapshot } from "../../mesh/ownership/snapshot.ts";
import { createEnforcer, type Enforcer } from "./enforcer.ts";
import type { Session } from "./session.ts";

/** No namespace has this name: in another cluster, no namespace is that of the pod. */
const NOWHERE = "/";

/** The cluster's part of a snapshot, as that of its API server alone; undefined if the pod may send nothing there. */
export function snapshotInside(snapshot: Snapshot, cluster: string): Snapshot | undefined {
  const table = snapshot.clusterTables?.get(cluster);
  if (table === undefined) return undefined;
  const { clusters: _, clusterTables: __, ...common } = snapshot;
  const frozen = frozenInside(snapshot.frozen, cluster);
  return { ...common, table, podNamespace: NOWHERE, lockName: "", inside: cluster, frozen };
}

export interface Enforcers extends Enforcer {
  /** By the name of the cluster. `current` is undefined while the routes have no table for it. */
  inside(cluster: string): Session;
}

export function createEnforcers(onListenerError?: (error: unknown) => void): Enforcers {
  const home = createEnforcer(onListenerError);
  const clusters = new Map<string, Enforcer>();
  let turn = 0;
  const all = () => [home, ...clusters.values()];
  const inside = (name: string): Enforcer => {
    const known = clusters.get(name) ?? createEnforcer(onListenerError);
    clusters.set(name, known);
    return known;
  };
  // Before the listeners at home, so that they find each cluster as the new routes have it.
  const follow = (snapshot: Snapshot) => {
    for (const name of snapshot.clusterTables?.keys() ?? []) inside(name);
    for (const [name, enforcer] of clusters) {
      const [next, last] = [snapshotInside(snapshot, name), enforcer.current?.snapshot];
      if (next === undefined) {
        enforcer.close();
        if (enforcer.isQuiet) clusters.delete(name);
      } else if (last !== undefined && hasSameRules(last, next)) enforcer.relabel(next);
      else enforcer.enforce(next);
    }
  };
  return {
    ...home,
    inside,
    get current() {
      return home.current;
    },
    enforce(snapshot) {
      follow(snapshot);
      home.enforce(snapshot);
    },
    relabel(snapshot) {
      follow(snapshot);
      home.relabel(snapshot);
    },
    whenDrained(run) {
      const mine = ++turn;
      const waiting = new Set(all());
      for (const enforcer of [...waiting])
        enforcer.whenDrained(() => {
          waiting.delete(enforcer);
          if (waiting.size === 0 && mine === turn) run();
        });
    },
    get isQuiet() {
      return all().every(({ isQuiet }) => isQuiet);
    },
    get renewals() {
      return home.renewals;
    },
    get heldNamespaces() {
      return all().reduce((sum, { heldNamespaces }) => sum + heldNamespaces, 0);
    },
    get drainingWrites() {
      return all().reduce((sum, { drainingWrites }) => sum + drainingWrites, 0);
    },
  };
}

/** Most updates change the tables of few clusters, and each enforced snapshot makes all watches there look for moves. */
function hasSameRules(a: Snapshot, b: Snapshot): boolean {
  const areFieldsSame = a.table === b.table && a.subset === b.subset && a.guard === b.guard && a.callers === b.callers;
  return areFieldsSame && isDeepStrictEqual(a.frozen, b.frozen);
}
