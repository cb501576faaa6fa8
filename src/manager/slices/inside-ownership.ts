// Who owns each place inside the other clusters whose namespaces an app divides, by the plan that the proxies were sent. Pure. Invariant:
// places of two clusters, and those at home, have different names.
import { isDeepStrictEqual } from "node:util";
import { remember } from "../../base/remember.ts";
import type { Wait } from "../../mesh/handover/plan-fences.ts";
import { type FrozenNamespace, frozenInside } from "../../mesh/ownership/frozen-places.ts";
import type { RouteTable } from "../../mesh/ownership/table.ts";
import { plannedClusters } from "../apps/planned-clusters.ts";
import type { OwnershipPlan } from "../apps/published-plans.ts";
import { type Ownership, ownershipByPlace } from "./place-ownership.ts";

const MARK = "inside/";

/** A place inside another cluster. */
export interface InsidePlace {
  /** Name of its MeshCluster. */
  readonly cluster: string;
  /** As at home. */
  readonly place: string;
}

export function placeInside({ cluster, place }: InsidePlace): string {
  return `${MARK}${cluster}/${place}`;
}

/** Undefined for a place at home, and for a whole cluster. */
export function insideOfPlace(name: string): InsidePlace | undefined {
  if (!name.startsWith(MARK)) return undefined;
  const end = name.indexOf("/", MARK.length);
  return { cluster: name.slice(MARK.length, end), place: name.slice(end + 1) };
}

interface Owned {
  readonly frozen: readonly FrozenNamespace[] | undefined;
  readonly tables: readonly RouteTable[];
  readonly waits: readonly Wait[];
  readonly places: ReadonlyMap<string, Ownership>;
}

/** A plan mostly has the tables of the last one for all clusters but one, and a table may have thousands of places. */
const lastOwned = remember((_desired: RouteTable) => new Map<string, Owned>());

/** By cluster and place. For a cluster in which nothing has changed the places are the same object. */
export function ownershipInside(
  plan: Pick<OwnershipPlan, "rules" | "clusterTables" | "clusterTableWaits">,
): ReadonlyMap<string, ReadonlyMap<string, Ownership>> {
  const subsets = [...plan.rules.keys()];
  return new Map(
    [...(plan.clusterTables ?? [])].map(([cluster, desired]) => {
      const tables = subsets.map((subset) => plan.rules.get(subset)?.clusterTables?.get(cluster) ?? desired);
      const waits = plan.clusterTableWaits?.get(cluster) ?? [];
      const known = lastOwned(desired);
      // Each subset has the same.
      const frozen = frozenInside(plan.rules.values().next().value?.frozen, cluster);
      const last = known.get(cluster);
      if (last !== undefined && isSame(last, { tables, waits, frozen })) return [cluster, last.places];
      const rules = new Map(subsets.map((subset, at) => [subset, { table: tables[at] ?? desired, frozen }]));
      const places = inCluster(cluster, ownershipByPlace({ desired, rules, waits }));
      known.set(cluster, { tables, waits, frozen, places });
      return [cluster, places];
    }),
  );
}

function isSame(a: Owned, b: Omit<Owned, "places">): boolean {
  const areTablesSame = a.tables.length === b.tables.length && a.tables.every((table, at) => table === b.tables[at]);
  return areTablesSame && isDeepStrictEqual([a.waits, a.frozen], [b.waits, b.frozen]);
}

function inCluster(cluster: string, owned: ReadonlyMap<string, Ownership>): ReadonlyMap<string, Ownership> {
  return new Map([...owned].map(([place, ownership]) => [placeInside({ cluster, place }), ownership]));
}

/** The clusters whose namespaces are divided, and of which no pod has told their owners yet. */
export function clustersWithoutOwners(plan: Pick<OwnershipPlan, "rules" | "clusterTables">): string[] {
  return plannedClusters(plan).flatMap(({ name, upstream }) =>
    upstream === undefined || plan.clusterTables?.has(name) ? [] : [name],
  );
}
