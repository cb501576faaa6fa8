// The handover, level-based. Pure function of (desired table, claims), without memory; called at every reconcile. Invariant: a
// namespace is granted to a subset only when no live pod of another subset may still claim the namespace under different rules.
//
//   Owned(A) => Fenced    when the desired table gives the namespace to B while a pod of A claims it
//   Fenced => Owned(B)    when every pod of A has acknowledged a table without it, or is gone and can no longer write
//
// Resources that are partitioned by label or shared move separately, each with all its objects at once: resource-fences.ts.
import { isDeepStrictEqual } from "node:util";
import { isInClusterScope } from "../../kube/place.ts";
import { type FenceRule, isFencedIn, type RouteTable } from "../../route/table.ts";
import { type Claim, classNumber, createHolders, createSignatures } from "./claims.ts";
import { planResourceFences } from "./resource-fences.ts";

/** Why a pod may still have a claim. */
type WaitCause =
  /** The claim is in a snapshot that the pod may enforce. */
  | "holds"
  /** Its proxy has not reported its claims. */
  | "unreported"
  /** Its proxy has not reported, and the pod does not start, so the proxy will not report without help. */
  | "unstarted"
  /** It has no proxy. */
  | "no-proxy"
  /** Its object is gone, and the API server may still accept its token. */
  | "pod-gone"
  /** `podName` is "": this manager does not know yet which pods were removed just before it became the leader. */
  | "just-listed";

/** The namespaces or resources that one pod keeps from other subsets. */
export interface Wait {
  /** The pod that may still have the claim. */
  readonly podName: string;
  /** The pod's subset in the claim; undefined if not known. */
  readonly subset: string | undefined;
  readonly cause: WaitCause;
  /** The namespaces that wait, in the order of the table; none if only resources that move as a whole or cluster-scoped objects wait. Pods with equal claims share one array. */
  readonly namespaces: readonly string[];
  /** The subsets that wait for the pod. */
  readonly to: readonly string[];
}

export interface FencePlan {
  /** For each subset the namespaces, CLUSTER_SCOPE and buckets that it would own but must not have yet. */
  readonly fenced: ReadonlyMap<string, ReadonlySet<string>>;
  /** For each subset the fences of resources that it must not have yet. */
  readonly resourceFences: ReadonlyMap<string, readonly FenceRule[]>;
  /** The pods that subsets wait for. Each claim of a pod has one entry for namespaces and one for resources that move as a whole. */
  readonly waits: readonly Wait[];
}

/** Plans the fences of every subset. The cost grows with the number of different tables, not with the number of pods. */
export function planFences(desired: RouteTable, subsets: readonly string[], claims: readonly Claim[]): FencePlan {
  const groups = groupClaims(claims);
  const fenced = new Map(subsets.map((subset) => [subset, new Set<string>()]));
  const waits: Wait[] = [];
  const comparison = compareClaims(desired, groups);
  for (const { claim, pods } of groups) {
    const namespaces: string[] = [];
    const kept = new Set<string>();
    for (const namespace of comparison.conflictsOf(claim)) {
      let isKept = false;
      for (const subset of comparison.desiredHolders(namespace)) {
        if (subset === claim.subset || comparison.isGranted(subset, namespace)) continue;
        fenced.get(subset)?.add(namespace);
        kept.add(subset);
        isKept = true;
      }
      if (isKept && !isInClusterScope(namespace)) namespaces.push(namespace);
    }
    if (kept.size > 0) waits.push(...waitsOf(claim, pods, namespaces, [...kept]));
  }
  const resources = planResourceFences(
    desired,
    subsets,
    groups.map(({ claim }) => claim),
  );
  const podsOf = new Map(groups.map(({ claim, pods }) => [claim, pods]));
  waits.push(...[...resources.waitsFor].flatMap(([claim, to]) => waitsOf(claim, podsOf.get(claim) ?? [], [], to)));
  return { fenced, resourceFences: resources.fenced, waits };
}

function waitsOf(claim: Claim, pods: readonly string[], namespaces: readonly string[], to: readonly string[]): Wait[] {
  const common = { subset: claim.subset, cause: causeOf(claim), namespaces, to };
  return pods.map((podName) => ({ podName, ...common }));
}

// A cache of the last table with fences of each subset, by the desired table. While thousands of pods register, each plan has the same fences.
const lastFenced = new WeakMap<RouteTable, Map<string, RouteTable>>();

/** The desired table with a subset's fences. Equal fences give the same object as last time, so that its hash is not computed again. */
export function withFences(desired: RouteTable, plan: FencePlan, subset: string): RouteTable {
  const fenced = plan.fenced.get(subset) ?? new Set<string>();
  const fences = plan.resourceFences.get(subset) ?? [];
  if (fenced.size === 0 && fences.length === 0) return desired;
  const rules = [...desired.rules, ...fences];
  const known = lastFenced.get(desired) ?? new Map<string, RouteTable>();
  lastFenced.set(desired, known);
  const last = known.get(subset);
  if (last !== undefined && isDeepStrictEqual([last.rules, last.fenced], [rules, fenced])) return last;
  const table = { ...desired, rules, fenced };
  known.set(subset, table);
  return table;
}

function causeOf(claim: Claim): WaitCause {
  if (claim.isGone) return claim.podName === "" ? "just-listed" : "pod-gone";
  if (claim.kind === "table") return "holds";
  if (claim.isUnstarted) return "unstarted";
  return claim.subset === undefined ? "unreported" : "no-proxy";
}

/** Equal claims: of one table as one subset, or of everything. Claims with different wait causes are in different groups. */
interface ClaimGroup {
  /** One claim of the group. */
  readonly claim: Claim;
  /** A pod of the group enforces the claim. */
  isEnforced: boolean;
  readonly pods: string[];
}

const EVERYTHING = {};

function groupClaims(claims: readonly Claim[]): ClaimGroup[] {
  const groups = Map.groupBy(claims, causeOf);
  return [...groups.values()].flatMap(groupEqual);
}

function groupEqual(claims: readonly Claim[]): ClaimGroup[] {
  const known = new Map<object, Map<string | undefined, ClaimGroup>>();
  for (const claim of claims) {
    const of = claim.kind === "table" ? claim.table : EVERYTHING;
    const bySubset = known.get(of) ?? new Map<string | undefined, ClaimGroup>();
    known.set(of, bySubset);
    const group = bySubset.get(claim.subset) ?? { claim, isEnforced: false, pods: [] };
    bySubset.set(claim.subset, group);
    group.isEnforced ||= claim.kind === "table" && claim.enforced;
    if (group.pods.at(-1) !== claim.podName) group.pods.push(claim.podName);
  }
  return [...known.values()].flatMap((bySubset) => [...bySubset.values()]);
}

interface Comparison {
  desiredHolders(namespace: string): ReadonlySet<string>;
  /** The namespaces of a claim whose rules differ from the desired table. */
  conflictsOf(claim: Claim): readonly string[];
  /**
   * True if a pod of the subset already enforces the namespace as desired. The namespace was granted when no other subset had a
   * claim, and no other subset was granted it since. So a pod that has not reported yet is no reason to fence it.
   */
  isGranted(subset: string, namespace: string): boolean;
}

function compareClaims(desired: RouteTable, groups: readonly ClaimGroup[]): Comparison {
  const desiredNamespaces = [...desired.classOf.keys()];
  const holdingsOf = createHoldings(desired);
  const conflicts = new Map<Claim, readonly string[]>();
  const held = new Map<string, Set<string>[]>();
  for (const { claim, isEnforced } of groups) {
    if (claim.kind !== "table") continue;
    const holdingOf = holdingsOf(claim.table, claim.subset);
    const asDesired = new Set<string>();
    const otherwise: string[] = [];
    const read = (namespace: string) => {
      const holding = holdingOf(namespace);
      if (holding === "as-desired") asDesired.add(namespace);
      else if (holding === "otherwise") otherwise.push(namespace);
    };
    for (const namespace of desiredNamespaces) read(namespace);
    // A namespace that is only in the claim's table counts too: under the desired table, the default subset owns what no rule covers in it.
    for (const namespace of claim.table.classOf.keys()) if (!desired.classOf.has(namespace)) read(namespace);
    conflicts.set(claim, otherwise);
    if (isEnforced) held.set(claim.subset, [...(held.get(claim.subset) ?? []), asDesired]);
  }
  return {
    desiredHolders: createHolders(desired),
    conflictsOf: (claim) => (claim.kind === "everything" ? desiredNamespaces : (conflicts.get(claim) ?? [])),
    isGranted: (subset, namespace) => held.get(subset)?.some((namespaces) => namespaces.has(namespace)) ?? false,
  };
}

type Holding = "not-held" | "as-desired" | "otherwise";

// How a subset's ownership of a namespace under a table compares with the desired table. Compared once for each pair of classes.
function createHoldings(desired: RouteTable) {
  const desiredSignature = createSignatures(desired);
  return (table: RouteTable, subset: string): ((namespace: string) => Holding) => {
    const holders = createHolders(table);
    const signature = createSignatures(table);
    const known = new Map<number, Holding>();
    const width = desired.classes.length + 2;
    return (namespace) => {
      if (isFencedIn(table, namespace)) return "not-held";
      const pair = classNumber(table, namespace) * width + classNumber(desired, namespace);
      let holding = known.get(pair);
      if (holding === undefined) {
        const isSame = signature(namespace) === desiredSignature(namespace);
        holding = !holders(namespace).has(subset) ? "not-held" : isSame ? "as-desired" : "otherwise";
        known.set(pair, holding);
      }
      return holding;
    };
  };
}
