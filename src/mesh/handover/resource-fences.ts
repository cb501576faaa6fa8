// The handover of resources that are partitioned by label or shared. Pure. The manager does not know the
// objects, so such a resource moves as a whole when its rules change. Invariant: a subset gets it only when
// no live pod of another subset may still enforce other rules. Limits do not matter, since they take objects
// away from all subsets.

import { remember, rememberNames } from "../../base/remember.ts";
import type { GroupResource } from "../../kube/types.ts";
import { type FenceRule, isSharded, type ResourceMatch, type RouteTable, resourcesIn } from "../ownership/table.ts";
import type { Claim } from "./claims.ts";
import { readingOf, textOf } from "./resource-reading.ts";

interface ResourceFences {
  /** For each subset the fences of resources that it must not have yet; no entry if there are none. */
  readonly fenced: ReadonlyMap<string, readonly FenceRule[]>;
  readonly waitsFor: ReadonlyMap<Claim, readonly string[]>;
}

/** The resources that a subset must not have yet because of a claim. */
interface Doubt {
  readonly keys: readonly GroupResource[];
  /** All other resources too, because the subset has nothing yet and the rules of the claim are not known. */
  readonly everything: boolean;
}

/** @param claims one claim of each group of equal claims */
export function planResourceFences(desired: RouteTable, subsets: readonly string[], claims: readonly Claim[]): ResourceFences {
  const doubtOf = createDoubts(desired, claims);
  const moving = new Map(subsets.map((subset) => [subset, [] as GroupResource[]]));
  const unreported = new Set<string>();
  const waitsFor = new Map<Claim, string[]>();
  for (const claim of claims) {
    const waiting = subsets.filter((subset) => {
      if (subset === claim.subset) return false;
      const { keys, everything } = doubtOf(claim, subset);
      moving.get(subset)?.push(...keys);
      if (everything) unreported.add(subset);
      return everything || keys.length > 0;
    });
    if (waiting.length > 0) waitsFor.set(claim, waiting);
  }
  const fenced = [...moving].map(([subset, keys]) => [subset, fenceRules(keys, unreported.has(subset))] as const);
  return { fenced: new Map(fenced.filter(([, rules]) => rules.length > 0)), waitsFor };
}

function createDoubts(desired: RouteTable, claims: readonly Claim[]): (claim: Claim, subset: string) => Doubt {
  const compare = createKeyComparison(desired);
  const tables = claims.filter((claim) => claim.kind === "table");
  const movable = movableUnder([desired, ...new Set(tables.map(({ table }) => table))]);
  const bySubset = Map.groupBy(tables, ({ subset }) => subset);
  const ownTables = (subset: string) => [...new Set((bySubset.get(subset) ?? []).map(({ table }) => table))];
  // True if a pod of the subset has the resource as desired, or will have it: see createGrants.
  const isOwnAlready = (subset: string, key: GroupResource) =>
    ownTables(subset).some((table) => compare(table, key).isSame && compare(table, key).stopped === "none");

  const ofTable = remember((table: RouteTable) =>
    movableUnder([desired, table]).filter((key) => !compare(table, key).isSame && compare(table, key).stopped !== "all"),
  );
  // For a claim with unknown rules. A subset was granted everything in its own table, so only resources that
  // it has under other rules, or that are fenced from it, are in doubt. Without a table, everything is in
  // doubt.
  const ofUnreported = rememberNames((subset: string): Doubt => {
    const full = ownTables(subset).filter((table) => !hasNothingYet(table));
    const keys = full.length === 0 ? sharedUnder(desired) : [...movable, ...full.flatMap(fencesOf)];
    return { keys: distinct(keys).filter((key) => !isOwnAlready(subset, key)), everything: full.length === 0 };
  });
  // For a pod without a proxy, which acts as a pod of the default subset. Shared resources are not in doubt.
  const ofProxyless = rememberNames((subset: string): Doubt => {
    const { keys, everything } = ofUnreported(subset);
    return { keys: keys.filter((key) => !compare(desired, key).isShared), everything };
  });

  return (claim, subset) => {
    if (claim.kind === "everything") return claim.subset === undefined ? ofUnreported(subset) : ofProxyless(subset);
    return { keys: ofTable(claim.table).filter((key) => !isOwnAlready(subset, key)), everything: false };
  };
}

/** Compares tables with the desired table. Many pods share a table, so each comparison is made once. */
function createKeyComparison(desired: RouteTable) {
  const ofTable = remember((table: RouteTable) => {
    const known = new Map<string, ReturnType<typeof compare>>();
    const compare = (key: GroupResource) => {
      // A namespace that only one of the tables knows has no owner under the other table.
      const reading = readingOf(table, key, (namespace) => desired.classOf.has(namespace));
      const desiredReading = readingOf(desired, key, (namespace) => table.classOf.has(namespace));
      return { isSame: reading.division === desiredReading.division, stopped: reading.stopped, isShared: reading.isShared };
    };
    return (key: GroupResource) => {
      const result = known.get(textOf(key)) ?? compare(key);
      known.set(textOf(key), result);
      return result;
    };
  });
  return (table: RouteTable, key: GroupResource) => ofTable(table)(key);
}

const EVERY_RESOURCE: GroupResource = { group: "*", resource: "*" };

/** The resources that the tables may divide or share differently. All `sharded` rules share what they do not name. */
function movableUnder(tables: readonly RouteTable[]): GroupResource[] {
  const isMixed = new Set(tables.map(isSharded)).size > 1;
  const named = tables.flatMap(({ rules }) =>
    rules.flatMap((rule) => (rule.kind === "objects" || rule.kind === "sharded" ? resourcesIn(rule.resources) : [])),
  );
  const shared = tables.flatMap(({ sharedResources }) => resourcesIn(sharedResources));
  return distinct([...named, ...shared, ...(isMixed ? [EVERY_RESOURCE] : [])]);
}

// With a `sharded` rule, no narrower key covers all that it does not name.
function sharedUnder(table: RouteTable): GroupResource[] {
  return [...resourcesIn(table.sharedResources), ...(isSharded(table) ? [EVERY_RESOURCE] : [])];
}

function fencesOf({ rules }: RouteTable): GroupResource[] {
  return rules.flatMap((rule) => (rule.kind === "fence" ? resourcesIn(rule.resources) : []));
}

/** The table fences everything from its subset, since pods had not reported. */
export function hasNothingYet({ rules }: RouteTable): boolean {
  return rules.some((rule) => rule.kind === "fence" && rule.because === "unreported");
}

const EVERYTHING: readonly ResourceMatch[] = [{ apiGroups: ["*"], resources: ["*"] }];

function fenceRules(keys: readonly GroupResource[], everything: boolean): FenceRule[] {
  const common = { kind: "fence", origin: "handover" } as const;
  const sorted = distinct(keys).sort((a, b) => (textOf(a) < textOf(b) ? -1 : 1));
  const resources = sorted.map(({ group, resource }) => ({ apiGroups: [group], resources: [resource] }));
  return [
    ...(resources.length === 0 ? [] : [{ ...common, because: "moves" as const, resources }]),
    ...(everything ? [{ ...common, because: "unreported" as const, resources: EVERYTHING }] : []),
  ];
}

function distinct(keys: readonly GroupResource[]): GroupResource[] {
  return [...new Map(keys.map((key) => [textOf(key), key])).values()];
}
