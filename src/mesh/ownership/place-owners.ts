// All owners of a place by a route table, for OwnershipSlices and for the debug page that is compared with these. Pure.
import { DEFAULT_SUBSET, isSharded, membersIn, type RouteTable, resourcesIn } from "./table.ts";
import { subsetDisplayName } from "./words.ts";

/** As the schema of an OwnershipSlice has them (src/api/ownership-slice.ts). */
export const [MAX_OWNERS, MAX_OWNER_RESOURCES] = [65, 16];

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

/** An owner as an OwnershipSlice shows it. */
interface ShownOwner {
  readonly subset?: string;
  readonly resources?: readonly string[];
  readonly moreResources?: number;
}

/** The first owners, each with its first resources: a rule may name thousands. */
export function shownOwners(owners: readonly PlaceOwner[]): ShownOwner[] {
  return owners.slice(0, MAX_OWNERS).map(({ subset, resources }) => {
    const left = resources.length - MAX_OWNER_RESOURCES;
    return {
      ...(subset !== undefined && { subset: subsetDisplayName(subset) }),
      ...(resources.length > 0 && { resources: resources.slice(0, MAX_OWNER_RESOURCES) }),
      ...(left > 0 && { moreResources: left }),
    };
  });
}

function namesOf(resources: Parameters<typeof resourcesIn>[0]): string[] {
  return resourcesIn(resources).map(({ group, resource }) => (group === "" ? resource : `${resource}.${group}`));
}
