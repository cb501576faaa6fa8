// Which other clusters get another owner between two specs. Pure. It compares server by server, since a sidecar knows a cluster by
// its servers only, and every pod may send to a server that no divided cluster lists.
import { type ClusterRoute, clusterOf } from "../../mesh/ownership/clusters.ts";
import { subsetDisplayName } from "../../mesh/ownership/words.ts";

/** The owner of a cluster that the app does not divide. */
const EVERY_POD = "every pod";
/** In place of an owner, for a cluster whose namespaces are divided. Which of them move is not computed: they are in that cluster. */
export const BY_NAMESPACE = "(by namespace)";

export interface ClusterMove {
  readonly cluster: string;
  readonly from: string;
  readonly to: string;
  /** host:port of each server that gets another owner; absent: all of the cluster. */
  readonly servers?: readonly string[];
  /** Every pod can write there afterwards, and could not before. */
  readonly opens?: true;
  /** For how long no pod can write to the cluster, at most, if all pods have the annotation egress. Absent: pods go on writing. */
  readonly drainSeconds?: number;
}

export interface ClusterMoves {
  /** By cluster. */
  readonly moves: readonly ClusterMove[];
  /** The clusters that the app divides before or after. */
  readonly total: number;
  /** What the edit means for clusters that stay with their owners. */
  readonly notes: readonly string[];
}

/** @param before with the owners, and `after` too; empty: the app divides no clusters */
export function movedClusters(before: readonly ClusterRoute[], after: readonly ClusterRoute[]): ClusterMoves {
  const [old, next] = [routesByServer(before), routesByServer(after)];
  const servers = [...new Set([...old.keys(), ...next.keys()])].sort();
  const ofCluster = Map.groupBy(servers, (server) => (next.get(server) ?? old.get(server))?.name ?? "");
  const moves = [...ofCluster].flatMap(([cluster, all]) => {
    const ownersOf = (server: string) => [ownerIn(old, next, server), ownerIn(next, old, server)] as const;
    const byOwners = Map.groupBy(all, (server) => ownersOf(server).join("\n"));
    return [...byOwners.values()].flatMap(([first = "", ...others]): ClusterMove[] => {
      const [from, to] = ownersOf(first);
      if (from === to) return [];
      const drainMs = isOpen(next, first) ? undefined : next.get(first)?.drainMs;
      return [
        {
          cluster,
          from,
          to,
          ...(others.length + 1 < all.length && { servers: [first, ...others] }),
          ...(isOpen(next, first) && !isOpen(old, first) && { opens: true as const }),
          ...(drainMs !== undefined && { drainSeconds: drainMs / 1_000 }),
        },
      ];
    });
  });
  moves.sort((a, b) => (a.cluster < b.cluster ? -1 : 1));
  return { moves, total: ofCluster.size, notes: hidingNotes(before, after) };
}

/** An object of another owner's cluster: the new owner waits until the pods that see it hide it. Objects of no cluster stop nobody. */
function hidingNotes(before: readonly ClusterRoute[], after: readonly ClusterRoute[]): string[] {
  const staying = after.filter(
    (route) => !route.isOpen && before.some(({ name, owner }) => name === route.name && owner === route.owner),
  );
  const waiting = staying.filter(({ owner, objects = [] }) =>
    objects.some((object) => ![undefined, owner].includes(clusterOf({ clusters: before }, object)?.owner)),
  );
  const longest = Math.max(...waiting.map(({ drainMs }) => drainMs / 1_000));
  const names = waiting.map(({ name }) => name).join(", ");
  return waiting.length === 0
    ? []
    : [
        `no pod can write there for up to ${longest} s (drainSeconds), until pods of their former owners hide objects of discoveredBy: ${names}`,
      ];
}

function routesByServer(routes: readonly ClusterRoute[]): Routes {
  return new Map(routes.flatMap((route) => route.servers.map((server) => [server, route] as const)));
}

type Routes = ReadonlyMap<string, ClusterRoute>;

function isOpen(routes: Routes, server: string): boolean {
  const route = routes.get(server);
  return route === undefined || route.isOpen === true;
}

/** Of a server that every pod can reach in both, it is the owner who finds the cluster; otherwise who can write there. */
function ownerIn(routes: Routes, others: Routes, server: string): string {
  const route = routes.get(server);
  if (route === undefined || (route.isOpen && !isOpen(others, server))) return EVERY_POD;
  return route.upstream === undefined ? subsetDisplayName(route.owner) : BY_NAMESPACE;
}

/** What the moves mean for the pods, as notes. */
export function clusterNotes(moves: readonly ClusterMove[]): string[] {
  const opened = moves.filter(({ opens }) => opens).map(clusterText);
  const closed = moves.filter(({ drainSeconds }) => drainSeconds !== undefined);
  const longest = Math.max(...closed.map(({ drainSeconds = 0 }) => drainSeconds));
  const names = [...new Set(closed.map(({ cluster }) => cluster))];
  return [
    ...(opened.length === 0 ? [] : [`every pod will be able to write to: ${opened.join(", ")}`]),
    ...(names.length === 0
      ? []
      : [
          `no pod can write there for up to ${longest} s (drainSeconds), longer if a pod has no annotation egress: ${names.join(", ")}`,
        ]),
  ];
}

export function clusterText({ cluster, servers }: ClusterMove): string {
  return servers === undefined ? cluster : `${cluster} (${servers.join(", ")})`;
}
