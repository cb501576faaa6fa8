// The handover of resources that labels divide. Pure; called by plan-fences.ts. Who owns one object follows from its labels, in
// every namespace alike, and nobody here knows the objects: so when the rules on labels of a resource change, the resource moves
// as a whole. A subset gets it only when no live pod of another subset may still go by other rules.
//
// Limits are left out: they take objects away from everybody, and never give one subset's to another.
import type { ResourceMatch, RouteRule, RouteTable } from "../../route/table.ts";
import type { Claim } from "./claims.ts";

export interface ResourceFences {
  /** For each subset the resources of which it must not have any object yet; missing if none. */
  readonly fenced: ReadonlyMap<string, readonly ResourceMatch[]>;
  /** The claims that are waited for. */
  readonly waitsFor: readonly Claim[];
}

export function planResourceFences(wished: RouteTable, subsets: readonly string[], claims: readonly Claim[]): ResourceFences {
  const readings = createReadings(wished);
  const fenced = new Map<string, Map<string, ResourceMatch>>();
  const waitsFor: Claim[] = [];
  for (const claim of claims) {
    const before = waitsFor.length;
    for (const subset of subsets) {
      if (subset === claim.subset) continue;
      for (const [key, match] of readings.conflictsOf(claim)) {
        if (readings.isHeld(claims, subset, match)) continue;
        const own = fenced.get(subset) ?? new Map<string, ResourceMatch>();
        fenced.set(subset, own.set(key, match));
        if (waitsFor.length === before) waitsFor.push(claim);
      }
    }
  }
  return { fenced: new Map([...fenced].map(([subset, matches]) => [subset, sorted(matches)])), waitsFor };
}

const EVERYTHING: ReadonlyMap<string, ResourceMatch> = new Map([["*", { apiGroups: ["*"], resources: ["*"] }]]);

interface Readings {
  /** The resources that a claim may divide otherwise than is wished. */
  conflictsOf(claim: Claim): ReadonlyMap<string, ResourceMatch>;
  /** True if a pod of the subset has the resources already, as wished: see plan-fences.ts. */
  isHeld(claims: readonly Claim[], subset: string, match: ResourceMatch): boolean;
}

// Read once a table: many pods share one.
function createReadings(wished: RouteTable): Readings {
  const wishedMatches = matchesOf(wished, "objects");
  const cache = new Map<RouteTable, ReadonlyMap<string, ResourceMatch>>();
  const read = (table: RouteTable) => {
    const known = cache.get(table);
    if (known !== undefined) return known;
    const isFenced = fenceTest(table);
    const all = [...wishedMatches, ...matchesOf(table, "objects")];
    const conflicts = new Map(
      all.filter(([, match]) => !isFenced(match) && divisionOf(table, match) !== divisionOf(wished, match)),
    );
    cache.set(table, conflicts);
    return conflicts;
  };
  return {
    // By labels that nobody here has heard of, or by a rule on namespaces for what is fenced by labels at the moment.
    conflictsOf: (claim) => (claim.kind === "everything" ? EVERYTHING : read(claim.table)),
    isHeld: (claims, subset, match) =>
      claims.some(
        (claim) =>
          claim.kind === "table" &&
          claim.enforced &&
          claim.subset === subset &&
          !touchesFence(claim.table, match) &&
          divisionOf(claim.table, match) === divisionOf(wished, match),
      ),
  };
}

function matchesOf(table: RouteTable, kind: RouteRule["kind"]): Map<string, ResourceMatch> {
  const matches = table.rules.flatMap((rule) => (rule.kind === kind ? rule.resources : []));
  return new Map(matches.map((match) => [JSON.stringify([match.apiGroups, match.resources]), match]));
}

// True only for what is fenced as a whole.
function fenceTest(table: RouteTable): (match: ResourceMatch) => boolean {
  const fences = [...matchesOf(table, "fence").values()];
  return (match) => fences.some((fence) => holds(fence.apiGroups, match.apiGroups) && holds(fence.resources, match.resources));
}

function holds(list: readonly string[], part: readonly string[]): boolean {
  return list.includes("*") || part.every((each) => list.includes(each));
}

function touchesFence(table: RouteTable, match: ResourceMatch): boolean {
  return [...matchesOf(table, "fence").values()].some((fence) => meet(fence, match));
}

// How a table divides resources, as text: equal texts mean that every object of them has the same owner.
function divisionOf({ rules }: RouteTable, match: ResourceMatch): string {
  return JSON.stringify(
    rules.flatMap((rule) =>
      rule.kind === "objects" && rule.resources.some((each) => meet(each, match))
        ? [[rule.subset, rule.term.key, rule.term.operator, rule.term.values, rule.resources]]
        : [],
    ),
  );
}

/** True if a resource may be in both. */
function meet(a: ResourceMatch, b: ResourceMatch): boolean {
  return share(a.apiGroups, b.apiGroups) && share(a.resources, b.resources);
}

function share(a: readonly string[], b: readonly string[]): boolean {
  return a.includes("*") || b.includes("*") || a.some((each) => b.includes(each));
}

function sorted(matches: ReadonlyMap<string, ResourceMatch>): ResourceMatch[] {
  return [...matches].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, match]) => match);
}
