// The plan of one app, computed from facts alone: the desired table, the fences, and the rules of each pod's proxy. Pure. The rules get
// their versions in issue.ts.
import { once } from "../../base/remember.ts";
import type { ClusterTables } from "../ownership/snapshot.ts";
import type { RouteTable } from "../ownership/table.ts";
import type { AppFacts } from "./app-facts.ts";
import type { AppPod } from "./app-pod.ts";
import { goneClaims, isOfApp, lastSnapshot, podClaims, snapshotsOf } from "./claims.ts";
import { keptOwners } from "./kept-owners.ts";
import { clustersHash, madeRoutes, withClustersHash } from "./made-routes.ts";
import { planAbroad } from "./plan-abroad.ts";
import { type ClusterTrouble, type ClusterWait, clusterTroubles } from "./plan-clusters.ts";
import { planFences, type Wait, withFences } from "./plan-fences.ts";
import { podKey } from "./proxy-facts.ts";
import { createRules, type UnversionedSnapshot } from "./subset-rules.ts";
import { type UnfrozenPod, type UnheldFreeze, unfrozenPods, unheldFreezes } from "./unfrozen.ts";

export interface AppPlan {
  readonly desired: RouteTable;
  readonly subsets: readonly string[];
  /** What the proxies of each subset enforce now, fences included. */
  readonly rules: ReadonlyMap<string, UnversionedSnapshot>;
  /** The rules for one pod's proxy, with what it retains. */
  rulesFor(pod: AppPod): UnversionedSnapshot;
  readonly digest: string;
  readonly waits: readonly Wait[];
  /** The pods that may still write in a frozen namespace. Absent: none. */
  readonly unfrozen?: readonly UnfrozenPod[];
  /** The freezes that stop nobody. Absent: none. */
  readonly unheld?: readonly UnheldFreeze[];
  /** The pods that may still send requests to clusters of another subset. Absent: none. */
  readonly clusterWaits?: readonly ClusterWait[];
  /** Absent: none. */
  readonly clusterTroubles?: readonly ClusterTrouble[];
  /** The owners inside other clusters, without fences. Absent: the app divides no cluster in this way. */
  readonly clusterTables?: ClusterTables | undefined;
  /** Beside these, the pods that namespaces there wait for. */
  readonly clusterTableWaits?: ReadonlyMap<string, readonly Wait[]> | undefined;
  /** The number of namespaces that a pause keeps with another owner than the spec demands, also in other clusters. */
  readonly kept: number;
  /** More namespaces would move than the app allows at once, so somebody has to confirm the moves. */
  readonly needsConfirmation: boolean;
  /** For the status: the hashes of the tables that a pause may keep, the oldest first. */
  readonly ownersHashes?: readonly string[];
  /** The app is being deleted: every pod will own everything again, and none needs a restart. */
  readonly isDissolving: boolean;
}

export function planApp(facts: AppFacts): AppPlan {
  const { app, pods, factsOf, gone = [], subsets, lockName, callers, guard, frozen, words, retainsLosses } = facts;
  const made = once(() => {
    const all = pods.flatMap((pod) => snapshotsOf(pod, factsOf(podKey(pod))));
    return madeRoutes(
      all.filter((each) => isOfApp(app, each)),
      facts.ownersHashes,
    );
  });
  const snapshots = () => made().snapshots;
  const { desired, clusters, tables, ...kept } = keptOwners(facts, snapshots);
  const claims = podClaims(app, pods, factsOf);
  const fences = planFences(desired, subsets, [...claims, ...goneClaims(app, gone)]);
  const abroad =
    clusters &&
    planAbroad({
      ...tables,
      owned: clusters,
      subsets,
      claims: [...claims, ...goneClaims(app, facts.goneAbroad ?? [])],
      snapshots,
    });
  const rules = createRules({
    common: { app, podNamespace: app.namespace, lockName, callers, guard, frozen, words },
    subsets,
    tableOf: (subset) => withFences(desired, fences, subset),
    clustersOf: abroad?.clustersOf,
    clusterTablesOf: abroad?.tablesOf,
    isYoung: facts.isYoung,
  });
  // A plan that keeps owners by routes proves nothing later if these may not be a manager's, or if not all pods have reported theirs.
  const followsPods = tables.isPaused || clusters?.some(({ name, upstream }) => upstream && !tables.bySpec.has(name)) === true;
  const isProof = !followsPods || (tables.isComplete && !made().isLost);
  const proof = abroad && isProof ? clustersHash({ clusters, clusterTables: abroad.clusterTables }) : undefined;
  return {
    desired,
    subsets,
    rules: rules.all,
    rulesFor(pod) {
      // A pod without a controller is not replaced: it lists again in place.
      const from = retainsLosses && pod.controlled ? lastSnapshot(app, factsOf(podKey(pod))) : undefined;
      return rules.of(pod.subset, from);
    },
    digest: rules.digest,
    waits: fences.waits,
    unfrozen: unfrozenPods({ app, frozen, clusters, pods, factsOf, gone, goneAbroad: facts.goneAbroad }),
    unheld: unheldFreezes(frozen, clusters),
    ...(abroad && { clusterWaits: abroad.waits, clusterTroubles: clusterTroubles(clusters ?? [], pods, factsOf) }),
    ...(abroad?.clusterTables && { clusterTables: abroad.clusterTables, clusterTableWaits: abroad.clusterTableWaits }),
    ...kept,
    ownersHashes: proof === undefined ? kept.ownersHashes : withClustersHash(kept.ownersHashes, proof),
    isDissolving: false,
  };
}
