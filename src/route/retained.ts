// The namespaces that a pod retains read-only (`RouteTable.retained`), compiled. Pure. Invariants: they add
// to what the pod may read and never to what it may write; a namespace that the table does not name is
// unknown, retained or not; the cost of a question does not depend on the number of namespaces or classes.
import { isInClusterScope } from "../kube/place.ts";
import { matchesResource, type RetainedClass, type RouteTable } from "./table.ts";

/** The class of every retained namespace. Made once for each table, for the views of all resources. */
export type RetainedIndex = ReadonlyMap<string, RetainedClass>;

/** Undefined if nothing is retained: only pods that wait for their restart retain namespaces. */
export function indexRetained({ retained, classOf }: RouteTable): RetainedIndex | undefined {
  if (retained === undefined) return undefined;
  const index = new Map<string, RetainedClass>();
  for (const each of retained) {
    for (const place of each.namespaces) if (isInClusterScope(place) || classOf.has(place)) index.set(place, each);
  }
  return index.size === 0 ? undefined : index;
}

/** Returns a test for the retained namespaces of one resource; undefined if the resource has none. */
export function createRetainedTest(
  index: RetainedIndex,
  group: string,
  resource: string,
): ((namespace: string) => boolean) | undefined {
  const visible = new Set([...new Set(index.values())].filter((each) => isVisible(each, group, resource)));
  if (visible.size === 0) return undefined;
  return (namespace) => {
    const each = index.get(namespace);
    return each !== undefined && visible.has(each);
  };
}

function isVisible({ rules }: RetainedClass, group: string, resource: string): boolean {
  const first = rules.find(({ resources }) => resources.length === 0 || matchesResource(resources, group, resource));
  return first?.visible === true;
}
