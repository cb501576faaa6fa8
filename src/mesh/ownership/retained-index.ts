// The namespaces that a pod has lost and still shows, indexed for the views of its resources. Pure.
import { isInClusterScope } from "../../kube/place.ts";
import { isMomentary, isVisibleBy, type RetainedClass, type RouteTable } from "./table.ts";

/** The class of every retained namespace. */
export type RetainedIndex = ReadonlyMap<string, RetainedClass>;

/** Undefined if nothing is retained. Namespaces that the table does not name stay unknown. */
export function indexRetained({ retained, classOf }: RouteTable): RetainedIndex | undefined {
  if (retained === undefined) return undefined;
  const index = new Map<string, RetainedClass>();
  for (const each of retained) {
    for (const place of each.namespaces) if (isInClusterScope(place) || classOf.has(place)) index.set(place, each);
  }
  return index.size === 0 ? undefined : index;
}

/** A test for the retained namespaces of one resource; undefined if it has none. Its cost is constant. */
export function createRetainedTest(
  index: RetainedIndex,
  group: string,
  resource: string,
): ((namespace: string) => boolean) | undefined {
  const visible = new Set([...new Set(index.values())].filter(({ rules }) => isVisibleBy(rules, group, resource)));
  if (visible.size === 0) return undefined;
  return (namespace) => {
    const each = index.get(namespace);
    return each !== undefined && visible.has(each);
  };
}

/** A test for the namespaces of `isRetained` that the pod retains for a moment only. */
export function momentaryTest(index: RetainedIndex, isRetained: (namespace: string) => boolean): (namespace: string) => boolean {
  return (namespace) => {
    const each = index.get(namespace);
    return each !== undefined && isMomentary(each) && isRetained(namespace);
  };
}
