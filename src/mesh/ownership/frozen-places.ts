// Where a freeze is: in a namespace at home, or in one inside another cluster. Pure. Invariant: a freeze counts in one cluster only, even if
// other clusters have a namespace of that name.
import { remember } from "../../base/remember.ts";

/** A person works in the namespace. It moves between subsets as any other. */
export interface FrozenNamespace {
  /** The name at home, or CLUSTER/NAMESPACE inside another cluster. No namespace at home has such a name. */
  readonly namespace: string;
  readonly reason: string;
}

export interface FrozenPlace {
  /** Name of its MeshCluster. Undefined: home. */
  readonly cluster: string | undefined;
  readonly namespace: string;
}

export function frozenPlaceOf(name: string): FrozenPlace {
  const end = name.indexOf("/");
  return end < 0 ? { cluster: undefined, namespace: name } : { cluster: name.slice(0, end), namespace: name.slice(end + 1) };
}

/** For example "namespace team-b of cluster eu-1". */
export function frozenText({ cluster, namespace }: Partial<FrozenPlace>): string {
  return `namespace ${namespace}${cluster === undefined ? "" : ` of cluster ${cluster}`}`;
}

/** The freezes inside a cluster, by the names that the namespaces have there. Undefined: none. */
export function frozenInside(frozen: readonly FrozenNamespace[] = [], cluster: string): readonly FrozenNamespace[] | undefined {
  const inside = frozen.flatMap(({ namespace: name, reason }) => {
    const place = frozenPlaceOf(name);
    return place.cluster === cluster ? [{ namespace: place.namespace, reason }] : [];
  });
  return inside.length === 0 ? undefined : inside;
}

/** The reasons of the freezes at home, by namespace. */
export const reasonsOf: (frozen: readonly FrozenNamespace[]) => ReadonlyMap<string, string> = remember(
  (frozen: readonly FrozenNamespace[]) =>
    new Map(
      frozen.flatMap(({ namespace, reason }) => (frozenPlaceOf(namespace).cluster === undefined ? [[namespace, reason]] : [])),
    ),
);
