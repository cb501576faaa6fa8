// What the proxies of each subset enforce, and that of single pods, which may retain what they have lost. Pure. Invariant: pods with equal
// rules share one object, so each table is compared once for all pods that enforce it.
import { createHash } from "node:crypto";
import { remember, rememberNames } from "../../base/remember.ts";
import { type RouteContent, routeDigest } from "../contract/route-type.ts";
import type { ClusterTables, Snapshot } from "../ownership/snapshot.ts";
import type { RouteTable } from "../ownership/table.ts";
import type { ClusterPlan } from "./plan-clusters.ts";
import { retainedBetween, type SubsetTable } from "./retained.ts";

/** The version belongs to the app, not to the rules. */
export type UnversionedSnapshot = Omit<Snapshot, "version">;

interface RulesOptions {
  readonly common: Omit<RouteContent, "subset" | "table" | "clusters" | "clusterTables">;
  readonly subsets: readonly string[];
  readonly tableOf: (subset: string) => RouteTable;
  /** Absent: the app divides no other cluster. */
  readonly clustersOf?: ClusterPlan["clustersOf"] | undefined;
  readonly clusterTablesOf?: ((subset: string) => ClusterTables | undefined) | undefined;
  /** True for a new namespace, which often gets its label late: to retain it would only restart pods. */
  readonly isYoung?: ((namespace: string) => boolean) | undefined;
}

/** The rules of each subset, and of each pod: those of its subset, with what the pod retains. */
export function createRules({ common, subsets, tableOf, clustersOf, clusterTablesOf, isYoung = () => false }: RulesOptions) {
  const abroad = rememberNames((subset: string) => ({
    clusters: clustersOf?.(subset),
    clusterTables: clusterTablesOf?.(subset),
  }));
  const withTable = (subset: string, table: RouteTable) => rulesOf({ ...common, ...abroad(subset), subset, table });
  const base = rememberNames((subset: string) => withTable(subset, tableOf(subset)));
  const byDigest = new Map<string, UnversionedSnapshot>();
  const retaining = (from: SubsetTable, subset: string): UnversionedSnapshot => {
    const rules = base(subset);
    const retained = retainedBetween(from, rules).flatMap((each) => {
      const namespaces = new Set([...each.namespaces].filter((name) => !isYoung(name)));
      return namespaces.size === 0 ? [] : [{ ...each, namespaces }];
    });
    if (retained.length === 0) return rules;
    const made = withTable(subset, { ...rules.table, retained });
    const same = byDigest.get(made.digest) ?? made;
    byDigest.set(made.digest, same);
    return same;
  };
  const afterTable = remember((table: RouteTable) =>
    rememberNames((before) => rememberNames((subset) => retaining({ subset: before, table }, subset))),
  );
  const all = new Map(subsets.map((subset) => [subset, base(subset)]));
  const digests = JSON.stringify([...all].map(([subset, { digest }]) => [subset, digest]));
  return {
    all,
    /** @param from the snapshot that the pod enforces now; undefined if the pod retains nothing */
    of: (subset: string, from: Snapshot | undefined) =>
      from === undefined ? base(subset) : afterTable(from.table)(from.subset)(subset),
    digest: createHash("sha256").update(digests).digest("hex").slice(0, 32),
  };
}

/** Equal rules have equal digests, in every replica and after restarts. */
export function rulesOf(content: RouteContent): UnversionedSnapshot {
  return { ...content, digest: routeDigest(content) };
}
