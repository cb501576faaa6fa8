// The resources that a ShardingConfig with `labelObjects` wants to be labelled. Pure; takes any object.
import { WILDCARD } from "../../api/resource-match.ts";
import { fieldAt, itemsOf, stringsOf } from "../../api/rule.ts";
import { resourceName } from "../../kube/client/resource.ts";
import { NAMESPACES } from "../../kube/client/resources.ts";
import type { GroupResource } from "../../kube/types.ts";

/** `namespaces`, and the resources that the object names; empty without `labelObjects`. */
export function labelledResources(config: unknown): readonly GroupResource[] {
  const spec = fieldAt(config, "spec");
  if (fieldAt(spec, "labelObjects") !== true) return [];
  const limits = [...itemsOf(fieldAt(spec, "limits")), ...itemsOf(fieldAt(spec, "root", "resourceSelector"))];
  const named = limits
    .flatMap((limit) => itemsOf(fieldAt(limit, "relateResources")))
    .flatMap((match) =>
      stringsOf(fieldAt(match, "apiGroups")).flatMap((group) =>
        stringsOf(fieldAt(match, "resources")).map((resource) => ({ group, resource })),
      ),
    );
  const { group, resource } = NAMESPACES;
  return uniqueResources([{ group, resource }, ...named]).filter((of) => of.group !== WILDCARD && of.resource !== WILDCARD);
}

export function uniqueResources(resources: readonly GroupResource[]): readonly GroupResource[] {
  return [...new Map(resources.map((of) => [resourceName(of), of])).values()];
}
