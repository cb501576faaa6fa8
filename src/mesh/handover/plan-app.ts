// The plan of one app, computed from facts alone: the desired table, the fences, the rules of each pod's
// proxy, and their versions. Pure. Invariant: pods with equal rules share one object, so each table is
// compared once for all pods that enforce it.
import { createHash } from "node:crypto";
import { once, remember, rememberNames } from "../../base/remember.ts";
import { type RouteContent, routeDigest } from "../contract/route-type.ts";
import type { ClusterRoute } from "../ownership/clusters.ts";
import { countNamespaces } from "../ownership/place-lists.ts";
import type { AppRef, CallerPolicy, ClusterTables, FrozenNamespace, Guard, Snapshot } from "../ownership/snapshot.ts";
import type { RouteTable } from "../ownership/table.ts";
import type { SourceWords } from "../ownership/words.ts";
import type { AppPod } from "./app-pod.ts";
import { type GoneAppPod, goneClaims, isOfApp, lastSnapshot, podClaims, snapshotsOf } from "./claims.ts";
import { pausedClusters } from "./kept-clusters.ts";
import { haveAllReported, type InForce, ownersHash, pauseAt, tableInForce } from "./paused.ts";
import { planAbroad } from "./plan-abroad.ts";
import { countKept, NONE_INSIDE, type TableByNames } from "./plan-cluster-tables.ts";
import { type ClusterPlan, type ClusterTrouble, type ClusterWait, clusterTroubles } from "./plan-clusters.ts";
import { planFences, type Wait, withFences } from "./plan-fences.ts";
import { type FactsOf, type ProxyFacts, podKey, snapshotsIn } from "./proxy-facts.ts";
import { retainedBetween, type SubsetTable } from "./retained.ts";
import { type UnfrozenPod, unfrozenPods } from "./unfrozen.ts";

/** What the plan follows in the spec of an app. */
export interface PlannedSpec {
  /** The default subset first, then the others in the order of the spec. */
  readonly subsets: readonly string[];
  /** Name of the operator's lock; "" if it has none. */
  readonly lockName: string;
  readonly callers: CallerPolicy;
  readonly guard?: Guard | undefined;
  readonly frozen?: readonly FrozenNamespace[] | undefined;
  /** Every namespace stays with its present owner. */
  readonly isPaused: boolean;
  /** If more of the namespaces would move, in percent, they stay until it is confirmed; absent: no limit. */
  readonly maxMovingPercent?: number | undefined;
  /** The subsets with which that limit keeps namespaces; absent: all. */
  readonly keptSubsets?: readonly string[] | undefined;
  /** Pods retain lost namespaces read-only until they are restarted. */
  readonly retainsLosses: boolean;
}

export interface AppFacts extends PlannedSpec {
  readonly app: AppRef;
  readonly words: SourceWords | undefined;
  readonly bySpec: RouteTable;
  readonly pods: readonly AppPod[];
  readonly factsOf: FactsOf;
  /** From the status (paused.ts); absent if it has none yet. */
  readonly ownersHashes?: readonly string[] | undefined;
  /** Removed pods that may still write; default none. */
  readonly gone?: readonly GoneAppPod[];
  /** The owners of other clusters by the spec, without fences. Absent: the app divides none. */
  readonly clusters?: readonly ClusterRoute[] | undefined;
  /** The owners inside the clusters with an upstream whose namespaces are known. Default: none. */
  readonly clusterTables?: ClusterTables | undefined;
  /** The owners inside the others, if they follow from the names that pods have. Default: they stay. */
  readonly tableByNames?: TableByNames | undefined;
  /** Pods that have ended or were removed, and whose last requests may still run in other clusters; default none. */
  readonly goneAbroad?: readonly GoneAppPod[];
  /** True for a namespace that was just created, which pods do not retain; default none. */
  readonly isYoung?: (namespace: string) => boolean;
}

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
  const { app, pods, factsOf, gone = [], bySpec, subsets, lockName, callers, guard, frozen, isPaused, retainsLosses } = facts;
  const { maxMovingPercent, words } = facts;
  const inForce: InForce =
    isPaused || maxMovingPercent !== undefined
      ? tableInForce(app, pods, factsOf, facts.ownersHashes)
      : { table: undefined, isLost: false, hashes: facts.ownersHashes ?? [] };
  const keptSubsets = isPaused ? subsets : (facts.keptSubsets ?? subsets);
  const paused = pauseAt(bySpec, inForce.table, keptSubsets);
  const snapshots = once(() =>
    pods.flatMap((pod) => snapshotsOf(pod, factsOf(podKey(pod)))).filter((each) => isOfApp(app, each)),
  );
  const isComplete = (!isPaused && maxMovingPercent === undefined) || haveAllReported(pods, factsOf);
  const tables = { bySpec: facts.clusterTables ?? new Map(), byNames: facts.tableByNames, keptSubsets, isComplete };
  const divided = (facts.clusters ?? []).filter(isDivided);
  const inside =
    divided.length === 0 || (!isPaused && maxMovingPercent === undefined)
      ? NONE_INSIDE
      : countKept({ ...tables, clusters: divided, snapshots: snapshots() });
  const exceeds = (kept: number, total: number) => maxMovingPercent !== undefined && kept * 100 > maxMovingPercent * total;
  // Large clusters must not hide that all of home moves.
  const atHome = countNamespaces(bySpec);
  const isOver = exceeds(paused.kept, atHome) || exceeds(paused.kept + inside.kept, atHome + inside.total);
  const isKept = isPaused || isOver;
  const desired = isKept ? paused.desired : bySpec;
  const added = inForce.isLost ? [] : [ownersHash(desired)];
  const ownersHashes = [...inForce.hashes.filter((hash) => !added.includes(hash)), ...added];
  const claims = podClaims(app, pods, factsOf);
  const fences = planFences(desired, subsets, [...claims, ...goneClaims(app, gone)]);
  const owned = ownedClusters(facts, { snapshots, keptSubsets, isOver, isComplete });
  const abroad =
    owned &&
    planAbroad({
      ...tables,
      owned,
      subsets,
      isPaused: isKept,
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
    unfrozen: unfrozenPods({ app, frozen, pods, factsOf, gone }),
    ...(abroad && { clusterWaits: abroad.waits, clusterTroubles: clusterTroubles(owned ?? [], pods, factsOf) }),
    ...(abroad?.clusterTables && { clusterTables: abroad.clusterTables, clusterTableWaits: abroad.clusterTableWaits }),
    kept: isKept ? paused.kept + inside.kept : 0,
    needsConfirmation: isOver && !isPaused,
    ownersHashes,
    isDissolving: false,
  };
}

interface KeptFacts {
  readonly snapshots: () => readonly Snapshot[];
  readonly keptSubsets: readonly string[];
  readonly isOver: boolean;
  readonly isComplete: boolean;
}

/** The limit of moves is about namespaces, so it keeps only clusters whose namespaces are divided: with them stays what is in no namespace. */
function ownedClusters(
  { clusters, subsets, isPaused }: AppFacts,
  { snapshots, keptSubsets, isOver, isComplete }: KeptFacts,
): readonly ClusterRoute[] | undefined {
  if (isPaused) return pausedClusters(clusters, snapshots(), subsets, isComplete);
  if (!isOver || clusters === undefined) return clusters;
  const kept = pausedClusters(clusters.filter(isDivided), snapshots(), keptSubsets, isComplete) ?? [];
  return [...clusters.filter((cluster) => !isDivided(cluster)), ...kept];
}

function isDivided({ upstream }: ClusterRoute): boolean {
  return upstream !== undefined;
}

/** The version belongs to the app, not to the rules. */
type UnversionedSnapshot = Omit<Snapshot, "version">;

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

export interface Issue {
  /** The highest version of all snapshots; the app's `status.routeVersion`. */
  readonly version: number;
  /** By digest; only those that a proxy needs. */
  readonly snapshots: ReadonlyMap<string, Snapshot>;
}

/**
 * Gives each set of rules its version. A new version exists only if a proxy must be sent something new.
 * Versions never decrease, and exceed every version that a proxy got from an earlier manager.
 * @param statusVersion the version in the app's status, for a new leader
 */
export function nextIssue(
  before: Issue | undefined,
  statusVersion: number,
  plan: AppPlan,
  pods: readonly AppPod[],
  factsOf: FactsOf,
): Issue {
  const takers = pods.flatMap((pod) => {
    const facts = pod.proxy === "own" ? factsOf(podKey(pod)) : undefined;
    return facts === undefined ? [] : [{ facts, rules: plan.rulesFor(pod) }];
  });
  const given = Math.max(before?.version ?? 0, statusVersion);
  const limit = Math.max(ALWAYS_POSSIBLE, given + MAX_LOST);
  let version = given;
  for (const { facts } of takers) {
    const named = [facts.version, ...snapshotsIn(facts).map((row) => row.version)];
    version = Math.max(version, ...named.filter((each) => each <= limit));
  }

  const snapshots = new Map<string, Snapshot>();
  for (const [digest, group] of Map.groupBy(takers, ({ rules }) => rules.digest)) {
    const connected = group.flatMap(({ facts }) => (facts.connected ? [facts] : []));
    const last = before?.snapshots.get(digest);
    const isKnown = (snapshot: Snapshot | undefined) => snapshot?.digest === digest && snapshot.version <= limit;
    const known = last ?? connected.map(({ acknowledged }) => acknowledged).find((acknowledged) => isKnown(acknowledged));
    // A proxy refuses a version lower than the highest it knows, so a version is reused only above that.
    const floor = connected.reduce((highest, facts) => Math.max(highest, highestOther(facts, digest, limit)), 0);
    const [first] = group;
    if (first === undefined) continue;
    if (known !== undefined && known.version > floor) snapshots.set(digest, last ?? { ...first.rules, version: known.version });
    else if (connected.length > 0) snapshots.set(digest, { ...first.rules, version: ++version });
  }
  return { version, snapshots };
}

/**
 * Bounds of the versions that a manager can have given: one change a second for a century, and the number of
 * versions that no status shows. A higher version comes from an attacker or a damaged file, and could exhaust
 * the integers.
 */
const ALWAYS_POSSIBLE = 2 ** 32;
const MAX_LOST = 2 ** 20;

// The highest version up to `limit` with other rules that the proxy knows.
function highestOther(facts: ProxyFacts, digest: string, limit: number): number {
  const known = snapshotsIn(facts);
  const newest = known.find((snapshot) => snapshot.version === facts.version);
  const spoken = newest?.digest === digest ? 0 : facts.version;
  const others = [spoken, ...known.map((snapshot) => (snapshot.digest === digest ? 0 : snapshot.version))];
  return Math.max(0, ...others.filter((version) => version <= limit));
}
