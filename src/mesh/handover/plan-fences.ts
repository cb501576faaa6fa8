// The handover of namespaces. A pure function of the desired table and the claims, without memory. Invariant:
// a subset gets a namespace only when no live pod of another subset may still claim it under different rules. A pod
// that has not reported counts as one of any subset.
//
//   Owned(A) => Fenced    when the desired table gives the namespace to B while a pod of A claims it
//   Fenced => Owned(B)    when every pod of A has acknowledged a table without it, or is gone and can no longer write
import { isDeepStrictEqual } from "node:util";
import { once, remember } from "../../base/remember.ts";
import { isInClusterScope } from "../../kube/place.ts";
import type { FenceRule, RouteTable } from "../ownership/table.ts";
import { type Claim, type ClaimOfTable, compareWith, type TableComparison } from "./claims.ts";
import { createHolders } from "./class-facts.ts";
import { planResourceFences } from "./resource-fences.ts";

/** Why a pod may still have a claim. */
export type WaitCause =
  /** The claim is in a snapshot that the pod may enforce. */
  | "holds"
  | "unreported"
  /** Its proxy has not reported, and the pod does not start, so the proxy will not report without help. */
  | "unstarted"
  | "no-proxy"
  /** Its object is gone, and the API server may still accept its token. */
  | "pod-gone"
  /** `podName` is "": this manager does not know yet which pods were removed just before it led. */
  | "just-listed";

/** The namespaces or resources that one pod keeps from other subsets. */
export interface Wait {
  readonly podName: string;
  /** The pod's subset in the claim; undefined if not known. */
  readonly subset: string | undefined;
  readonly cause: WaitCause;
  /** Grouped by class; none if only resources that move as a whole or cluster-scoped objects wait. */
  readonly namespaces: readonly string[];
  /** The subsets that wait for the pod. */
  readonly to: readonly string[];
}

interface FencePlan {
  /** For each subset the namespaces, CLUSTER_SCOPE and buckets that it would own but must not have yet. */
  readonly fenced: ReadonlyMap<string, ReadonlySet<string>>;
  /** For each subset the fences of resources that it must not have yet. */
  readonly resourceFences: ReadonlyMap<string, readonly FenceRule[]>;
  /** For each claim of a pod one entry for namespaces, and one for resources that move as a whole. */
  readonly waits: readonly Wait[];
}

/** The cost grows with the number of different tables, not with the number of pods. */
export function planFences(desired: RouteTable, subsets: readonly string[], claims: readonly Claim[]): FencePlan {
  const groups = groupClaims(claims);
  const fenced = new Map(subsets.map((subset) => [subset, new Set<string>()]));
  const waits: Wait[] = [];
  const desiredHolders = createHolders(desired);
  const isGranted = createGrants(desired, groups);
  const placesOfUnreported = once(() => knownPlaces(desired, groups));
  for (const { claim, pods } of groups) {
    const namespaces: string[] = [];
    const kept = new Set<string>();
    for (const namespace of claim.kind === "everything" ? placesOfUnreported() : conflictsOf(desired, claim)) {
      let isKept = false;
      for (const subset of desiredHolders(namespace)) {
        if (subset === claim.subset || isGranted(subset, namespace)) continue;
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

// Most plans have the fences of the last one, for example while thousands of pods register.
const lastFenced = remember((_desired: RouteTable) => new Map<string, RouteTable>());

/** The desired table with a subset's fences; for equal fences the same object, which is hashed once. */
export function withFences(desired: RouteTable, plan: FencePlan, subset: string): RouteTable {
  const fenced = plan.fenced.get(subset) ?? new Set<string>();
  const fences = plan.resourceFences.get(subset) ?? [];
  if (fenced.size === 0 && fences.length === 0) return desired;
  // Tables with the same list of rules are compared once.
  const rules = fences.length === 0 ? desired.rules : [...desired.rules, ...fences];
  const known = lastFenced(desired);
  const last = known.get(subset);
  if (last !== undefined && isSameSet(last.fenced, fenced) && isDeepStrictEqual(last.rules, rules)) return last;
  const table = { ...desired, rules, fenced };
  known.set(subset, table);
  return table;
}

function isSameSet(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  return a.size === b.size && a.isSubsetOf(b);
}

export function causeOf(claim: Claim): WaitCause {
  if (claim.isGone) return claim.podName === "" ? "just-listed" : "pod-gone";
  if (claim.kind === "table") return "holds";
  if (claim.isUnstarted) return "unstarted";
  return claim.subset === undefined ? "unreported" : "no-proxy";
}

/** The manager does not know yet what the pod claims, which does not mean that something moves. */
export function isUnheard({ cause }: { readonly cause: string }): boolean {
  return cause === "unreported" || cause === "just-listed";
}

/** The pods with equal claims: one table or everything, one subset, one cause. */
interface ClaimGroup {
  readonly claim: Claim;
  readonly isEnforced: boolean;
  readonly pods: readonly string[];
}

function groupClaims(claims: readonly Claim[]): ClaimGroup[] {
  const byCause = [...Map.groupBy(claims, causeOf).values()];
  const byTable = byCause.flatMap((same) => [...Map.groupBy(same, tableOf).values()]);
  const bySubset = byTable.flatMap((same) => [...Map.groupBy(same, ({ subset }) => subset).values()]);
  return bySubset.flatMap((same) => {
    const [claim] = same;
    if (claim === undefined) return [];
    const isEnforced = same.some((each) => each.kind === "table" && each.enforced);
    return [{ claim, isEnforced, pods: [...new Set(same.map(({ podName }) => podName))] }];
  });
}

function tableOf(claim: Claim): RouteTable | undefined {
  return claim.kind === "table" ? claim.table : undefined;
}

/** The places that the claim's subset owns, but not as desired. */
function conflictsOf(desired: RouteTable, claim: ClaimOfTable): Iterable<string> {
  return compareWith(desired, claim.table).conflictsOf(claim.subset);
}

/**
 * All places that a pod which has not reported may own, as far as anybody names them. The desired table does not name
 * all: it may have no buckets any more, or a namespace is deleted and may come back.
 */
function knownPlaces(desired: RouteTable, groups: readonly ClaimGroup[]): ReadonlySet<string> {
  const places = new Set(desired.classOf.keys());
  const read = new Set([desired.classOf]);
  for (const { claim } of groups) {
    if (claim.kind !== "table") continue;
    for (const place of claim.table.fenced) places.add(place);
    if (read.has(claim.table.classOf)) continue;
    read.add(claim.table.classOf);
    for (const place of claim.table.classOf.keys()) places.add(place);
  }
  return places;
}

/**
 * True if a pod of the subset already enforces the namespace as desired. The subset got it when no other one
 * had a claim, and no other one got it since, so a pod that has not reported is no reason to fence it.
 */
function createGrants(desired: RouteTable, groups: readonly ClaimGroup[]): (subset: string, namespace: string) => boolean {
  const enforced = new Map<string, TableComparison[]>();
  for (const { claim, isEnforced } of groups) {
    if (claim.kind !== "table" || !isEnforced) continue;
    const tables = enforced.get(claim.subset) ?? [];
    enforced.set(claim.subset, tables);
    tables.push(compareWith(desired, claim.table));
  }
  return (subset, namespace) => enforced.get(subset)?.some((table) => table.hasAsDesired(subset, namespace)) ?? false;
}
