// Who owns a namespace by a route table, so that two tables can be compared. Pure. The result is approximate:
// it covers the resources that a rule names and one other resource, and ignores the labels of objects.
import type { GroupResource } from "../../kube/types.ts";
import { type Owner, ownersOf } from "../../mesh/ownership/owners.ts";
import { type RouteTable, resourcesIn } from "../../mesh/ownership/table.ts";

/** A group and resource that only wildcards match. */
const UNNAMED = "nothing.ctrlmesh.kruise.io";
const UNNAMED_RESOURCE: GroupResource = { group: UNNAMED, resource: UNNAMED };
const MAX_PROBES = 32;

type OwnersIn = (namespace: string) => readonly Owner[];

/** The owners by each of the tables, for the same resources in the same order. */
export function comparedOwners(tables: readonly RouteTable[]): readonly OwnersIn[] {
  const probes = probesOf(tables);
  return tables.map((table) => {
    const owners = probes.map(({ group, resource }) => ownersOf(table, group, resource));
    return (namespace) => owners.map((each) => each.ownerOf(namespace));
  });
}

/** True if they are the same owners. The index of a limit does not matter. */
export function isSameOwner(a: Owner | undefined, b: Owner | undefined): boolean {
  return a !== undefined && b !== undefined && ownerKey(a) === ownerKey(b);
}

function probesOf(tables: readonly RouteTable[]): readonly GroupResource[] {
  const named = tables.flatMap(({ rules, sharedResources }) => [
    ...rules.flatMap(({ resources }) => resourcesIn(resources)),
    ...resourcesIn(sharedResources),
  ]);
  const probeOf = (name: string) => (name === "*" ? UNNAMED : name);
  const all = [UNNAMED_RESOURCE, ...named.map(({ group, resource }) => ({ group: probeOf(group), resource: probeOf(resource) }))];
  return [...new Map(all.map((probe) => [`${probe.group}/${probe.resource}`, probe])).values()].slice(0, MAX_PROBES);
}

function ownerKey(owner: Owner): string {
  switch (owner.kind) {
    case "subset":
      return `subset:${owner.subset}`;
    case "labels":
      return `labels:${owner.subsets.join(",")}`;
    default:
      return owner.kind;
  }
}
