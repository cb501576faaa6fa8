// All owners of a place by a route table, for OwnershipSlices and for the debug page that is compared with these. Pure.
import { DEFAULT_SUBSET, isSharded, membersIn, type RouteTable, resourcesIn } from "./table.ts";

export interface PlaceOwner {
  /** Undefined: nobody. */
  readonly subset: string | undefined;
  /** As RESOURCE.GROUP; none: all that no earlier owner has. */
  readonly resources: readonly string[];
}

/** In the order in which they decide, as `ownersOf` in owners.ts reads the rules. */
export function ownersIn(table: RouteTable, place: string): readonly PlaceOwner[] {
  const members = membersIn(table, place) ?? [];
  const owners: PlaceOwner[] = [];
  for (const [at, { kind, resources }] of table.rules.entries()) {
    if (kind !== "limit" || members.includes(at)) continue;
    if (resources.length === 0) return [];
    owners.push({ subset: undefined, resources: namesOf(resources) });
  }
  for (const at of members) {
    const rule = table.rules[at];
    if (rule?.kind !== "subset") continue;
    owners.push({ subset: rule.subset, resources: namesOf(rule.resources) });
    if (rule.resources.length === 0) return owners;
  }
  // What no rule of a sharded table names belongs to every shard.
  return isSharded(table) ? owners : [...owners, { subset: DEFAULT_SUBSET, resources: [] }];
}

function namesOf(resources: Parameters<typeof resourcesIn>[0]): string[] {
  return resourcesIn(resources).map(({ group, resource }) => (group === "" ? resource : `${resource}.${group}`));
}
