// The handover, level-based: a namespace is granted to a subset only when no live pod of another subset may still hold it
// under different rules. Pure function of (wished table, claims); called at every reconcile, with no memory of its own.
//
//   Owned(A) => Fenced    when the wished table gives the namespace to B while a pod of A claims it
//   Fenced => Owned(B)    when every live pod of A has acknowledged a table without it, or is gone
//
// Resources that labels divide or that are public move by themselves, all of their objects at once: resource-fences.ts.
import type { FenceRule, RouteTable } from "../../route/table.ts";
import { type Claim, createSignatures, holdersOf } from "./claims.ts";
import { planResourceFences } from "./resource-fences.ts";

/** Why a namespace waits. */
export interface Wait {
  /** "" for resources that move as a whole. */
  readonly namespace: string;
  /** The pod that may still hold it. */
  readonly pod: string;
  /** It holds it by its snapshot, it has not said what it holds, or it has no proxy to be told. */
  readonly cause: "holds" | "unreported" | "no-proxy";
}

export interface FencePlan {
  /** For each subset the namespaces that it would own but must not have yet. */
  readonly fenced: ReadonlyMap<string, ReadonlySet<string>>;
  /** For each subset the fences of resources of which it must not have any object yet. */
  readonly resourceFences: ReadonlyMap<string, readonly FenceRule[]>;
  /** What is waited for, one entry a (namespace, pod). */
  readonly waits: readonly Wait[];
}

/** Plans the fences of every subset. */
export function planFences(wished: RouteTable, subsets: readonly string[], claims: readonly Claim[]): FencePlan {
  const fenced = new Map(subsets.map((subset) => [subset, new Set<string>()]));
  const waits: Wait[] = [];
  const readings = createReadings(wished);
  for (const claim of claims) {
    for (const namespace of readings.conflictsOf(claim)) {
      const waiting = [...holdersOf(wished, namespace)].filter(
        (subset) => subset !== claim.subset && !readings.isHeld(claims, subset, namespace),
      );
      for (const subset of waiting) fenced.get(subset)?.add(namespace);
      if (waiting.length > 0) waits.push({ namespace, pod: claim.pod, cause: causeOf(claim) });
    }
  }
  const resources = planResourceFences(wished, subsets, claims);
  waits.push(...resources.waitsFor.map((claim) => ({ namespace: "", pod: claim.pod, cause: causeOf(claim) })));
  return { fenced, resourceFences: resources.fenced, waits };
}

/** The wished table with a subset's fences. */
export function withFences(wished: RouteTable, plan: FencePlan, subset: string): RouteTable {
  const fenced = plan.fenced.get(subset) ?? new Set<string>();
  const rules = plan.resourceFences.get(subset) ?? [];
  if (fenced.size === 0 && rules.length === 0) return wished;
  return { ...wished, rules: [...wished.rules, ...rules], fenced };
}

function causeOf(claim: Claim): Wait["cause"] {
  if (claim.kind === "table") return "holds";
  return claim.subset === undefined ? "unreported" : "no-proxy";
}

interface Readings {
  /** The namespaces that a claim may hold other than the wished table says. */
  conflictsOf(claim: Claim): readonly string[];
  /**
   * True if a pod of the subset already enforces the namespace as wished. Then it was granted when nobody else held it, and
   * nobody else was granted it since: a pod that has merely not reported yet is no reason to take it away.
   */
  isHeld(claims: readonly Claim[], subset: string, namespace: string): boolean;
}

// Read once a (table, subset): many pods share one table.
function createReadings(wished: RouteTable): Readings {
  const wishedNamespaces = [...wished.classOf.keys()];
  const wishedSignature = createSignatures(wished);
  const cache = new Map<RouteTable, Map<string, { conflicts: string[]; held: Set<string> }>>();

  const read = (table: RouteTable, subset: string) => {
    const bySubset = cache.get(table) ?? new Map<string, { conflicts: string[]; held: Set<string> }>();
    cache.set(table, bySubset);
    const known = bySubset.get(subset);
    if (known !== undefined) return known;
    const signature = createSignatures(table);
    const reading = { conflicts: [] as string[], held: new Set<string>() };
    // A namespace that only the claim knows counts too: where no rule applies, the wished table gives it to the default subset.
    for (const namespace of new Set([...wishedNamespaces, ...table.classOf.keys()])) {
      if (!holdersOf(table, namespace).has(subset)) continue;
      if (signature(namespace) === wishedSignature(namespace)) reading.held.add(namespace);
      else reading.conflicts.push(namespace);
    }
    bySubset.set(subset, reading);
    return reading;
  };

  return {
    conflictsOf: (claim) => (claim.kind === "everything" ? wishedNamespaces : read(claim.table, claim.subset).conflicts),
    isHeld: (claims, subset, namespace) =>
      claims.some(
        (claim) =>
          claim.kind === "table" && claim.enforced && claim.subset === subset && read(claim.table, subset).held.has(namespace),
      ),
  };
}
