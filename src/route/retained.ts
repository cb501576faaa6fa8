// What a pod goes on showing of namespaces that its subset has lost (`RouteTable.shown`), compiled. Pure. Invariant: it adds to
// what may be read and never to what may be written; only namespaces that the table knows are shown, so one that is deleted is
// unknown as ever; the cost of a question does not depend on the number of namespaces or of classes. Called by viewOf.
import { matchesResource, type RetainedClass, type RouteTable } from "./table.ts";

/** The class of every shown namespace. Made once a table, for the views of all resources. */
export type RetainedIndex = ReadonlyMap<string, RetainedClass>;

/** Undefined if nothing is shown, as in every pod but those that wait for their restart. */
export function indexRetained({ retained, classOf }: RouteTable): RetainedIndex | undefined {
  if (retained === undefined) return undefined;
  const index = new Map<string, RetainedClass>();
  for (const each of retained) {
    for (const namespace of each.namespaces) if (namespace === "" || classOf.has(namespace)) index.set(namespace, each);
  }
  return index.size === 0 ? undefined : index;
}

/** Whether a namespace of one resource is shown; undefined if none is. */
export function retainedIn(index: RetainedIndex, group: string, resource: string): ((namespace: string) => boolean) | undefined {
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
