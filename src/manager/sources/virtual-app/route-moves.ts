// What an edit of the rules does to the namespaces that there are: how many change their owner. Pure; for the warning that
// admission returns. Approximate on purpose where it costs nothing but words: it looks at the resources that a rule names and at one
// that none does, and not at objects' labels.
import type { VirtualAppSpec } from "../../../api/virtual-app.ts";
import { type Owner, ownersOf, type ResourceOwners, type RouteTable } from "../../../route/table.ts";
import type { NamespaceFacts } from "../app.ts";
import { compileRoute } from "./compile-route.ts";

export interface RouteMoves {
  /** Namespaces in which some resource gets another owner. */
  readonly moved: number;
  readonly total: number;
}

/** Both specs must be valid. */
export function routeMoves(before: VirtualAppSpec, after: VirtualAppSpec, namespaces: readonly NamespaceFacts[]): RouteMoves {
  const tables = [compileRoute(before, namespaces), compileRoute(after, namespaces)] as const;
  const probes = probesOf(tables);
  const [old, next] = tables.map((table) => probes.map(([group, resource]) => ownersOf(table, group, resource)));
  const moved = namespaces.filter(({ name }) => ownersIn(old ?? [], name) !== ownersIn(next ?? [], name));
  return { moved: moved.length, total: namespaces.length };
}

/** No rule names it, but for those that name all. */
const UNNAMED = "nothing.ctrlmesh.kruise.io";
const MAX_PROBES = 32;

/** Resources at which the tables may differ. */
function probesOf(tables: readonly RouteTable[]): readonly (readonly [group: string, resource: string])[] {
  const named = tables
    .flatMap(({ rules, sharedResources }) => [...rules.flatMap(({ resources }) => resources), ...sharedResources])
    .flatMap(({ apiGroups, resources }) => apiGroups.flatMap((group) => resources.map((resource) => [group, resource] as const)))
    .map(([group, resource]) => [group === "*" ? UNNAMED : group, resource === "*" ? UNNAMED : resource] as const);
  const all = [[UNNAMED, UNNAMED] as const, ...named];
  return [...new Map(all.map((probe) => [probe.join("/"), probe])).values()].slice(0, MAX_PROBES);
}

function ownersIn(owners: readonly ResourceOwners[], namespace: string): string {
  return owners.map((each) => ownerKey(each.ownerOf(namespace))).join(" ");
}

function ownerKey(owner: Owner): string {
  switch (owner.kind) {
    case "subset":
      return `subset:${owner.subset}`;
    case "labels":
      return `labels:${owner.subsets.join(",")}`;
    default:
      return owner.kind; // where the limit stands does not matter
  }
}
