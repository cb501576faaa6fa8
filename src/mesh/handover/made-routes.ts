// Which routes a manager has made, as far as they are about other clusters. Pure. Any proxy can register routes that no manager has made,
// and while a cluster's namespaces are not known, or the app is paused, the owners there follow from the routes of the pods. So the status
// has hashes of these owners, beside those at home (paused.ts). Invariant: a hash gets there only from a plan whose owners follow from the
// spec, or from routes with a hash of the status.
import { createHash } from "node:crypto";
import { remember } from "../../base/remember.ts";
import type { Snapshot } from "../ownership/snapshot.ts";
import { CLUSTERS_HASH, ownersHash } from "./paused.ts";

type Abroad = Pick<Snapshot, "clusters" | "clusterTables">;

/** The status has eight hashes, and those at home need some of them. */
const MAX_HASHES = 4;

/** SHA-256 in hex of the owners of other clusters and inside them, without fences. */
export const clustersHash = remember(({ clusters = [], clusterTables = new Map() }: Abroad): string => {
  const owners = clusters.map(({ name, owner }) => [name, owner]).sort();
  const tables = [...clusterTables].map(([name, table]) => [name, ownersHash(table)]).sort();
  const hash = createHash("sha256").update(JSON.stringify([owners, tables]));
  return CLUSTERS_HASH + hash.digest("hex");
});

/**
 * The routes that a manager has made. If there are none, all: after a failover the newest hash may not be in the status.
 * @param written the hashes of the status
 */
export function madeRoutes(all: readonly Snapshot[], written: readonly string[] = []) {
  const hashes = new Set(written.filter((hash) => hash.startsWith(CLUSTERS_HASH)));
  const made = hashes.size === 0 ? [] : all.filter((snapshot) => hashes.has(clustersHash(snapshot)));
  return {
    snapshots: made.length > 0 ? made : all,
    /** No pod has such routes, though managers have made some. */
    isLost: hashes.size > 0 && made.length === 0,
  };
}

/** The hashes with one more. The newest hash at home stays the last one. */
export function withClustersHash(hashes: readonly string[], added: string): readonly string[] {
  const newestAtHome = hashes.slice(-1);
  const others = hashes.slice(0, -1).filter((hash) => hash !== added);
  const older = others.filter((hash) => hash.startsWith(CLUSTERS_HASH)).slice(0, 1 - MAX_HASHES);
  return [...others.filter((hash) => !older.includes(hash)), added, ...newestAtHome];
}
