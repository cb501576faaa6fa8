// Removes the labels of the mesh from the objects of one resource. Invariants: a page of objects is in memory at a time; an
// object that cannot be changed hides no other; it ends, whatever sets the labels again.
import { errorMessage, isMeshError } from "../../base/errors.ts";
import type { Resource } from "../../kube/client/resource.ts";
import type { KubeObject } from "../../kube/types.ts";
import type { Cluster } from "../frame/cluster.ts";
import { removal, selectorsOf } from "./labelled-kinds.ts";

const PAGE = 500;
/** Each is a process of kubectl. */
const AT_ONCE = 8;
/** An object that was changed meanwhile is tried again. */
const MAX_TRIES = 3;
/** A page has to have room for others. */
const MAX_FAILURES = 500;
const MAX_COUNTED = 5_000;

export interface Removed {
  readonly removed: number;
  /** By NAMESPACE/NAME: why its labels are still there. */
  readonly failures: ReadonlyMap<string, string>;
}

interface Progress {
  readonly tries: Map<string, number>;
  readonly done: Set<string>;
  readonly failures: Map<string, string>;
}

/** @param tell called with the number of objects so far, after each page */
export async function removeLabels(cluster: Cluster, resource: Resource, tell: (removed: number) => void): Promise<Removed> {
  const progress: Progress = { tries: new Map(), done: new Set(), failures: new Map() };
  const { tries, done, failures } = progress;
  for (const selector of selectorsOf(resource)) {
    while (failures.size < MAX_FAILURES) {
      // What was changed is not selected any more, so the first page is always the next one.
      const page = await cluster.list(resource, undefined, selector, PAGE + failures.size);
      for (const title of page.map(titleOf)) if (done.delete(title)) failures.set(title, "its labels were set again");
      const due = page.filter((object) => (tries.get(titleOf(object)) ?? 0) < MAX_TRIES);
      if (due.length === 0) break;
      for (let at = 0; at < due.length; at += AT_ONCE)
        await Promise.all(due.slice(at, at + AT_ONCE).map((object) => removeOne(cluster, resource, object, progress)));
      tell(done.size);
    }
  }
  return { removed: done.size, failures };
}

async function removeOne(cluster: Cluster, resource: Resource, object: KubeObject, { tries, done, failures }: Progress) {
  const { namespace = "", name = "" } = object.metadata;
  const title = titleOf(object);
  tries.set(title, (tries.get(title) ?? 0) + 1);
  try {
    await cluster.patch(resource, { namespace, name }, removal(object), false);
    failures.delete(title);
    done.add(title);
  } catch (error) {
    if (isMeshError(error, "NOT_FOUND")) failures.delete(title);
    else failures.set(title, errorMessage(error));
  }
}

/** How many objects have the labels, at most 5,000. The API server checks the removal from one of them. */
export async function countLabelled(cluster: Cluster, resource: Resource): Promise<Removed> {
  const labelled = new Map<string, KubeObject>();
  for (const selector of selectorsOf(resource)) {
    const objects = await cluster.list(resource, undefined, selector, MAX_COUNTED);
    for (const object of objects) labelled.set(titleOf(object), object);
  }
  const [first] = labelled.values();
  if (first !== undefined) {
    const { namespace = "", name = "" } = first.metadata;
    await cluster.patch(resource, { namespace, name }, removal(first), true);
  }
  return { removed: Math.min(labelled.size, MAX_COUNTED), failures: new Map() };
}

function titleOf({ metadata: { namespace, name = "" } }: KubeObject): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}
