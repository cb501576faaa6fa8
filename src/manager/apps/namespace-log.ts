// The latest changes of namespaces on which the routes of a source kind depend, so that a table is compiled
// for these alone. Invariant: if the log has forgotten one of the changes, `since` returns undefined, and the
// caller has to look at all namespaces.
import type { KubeObject } from "../../kube/types.ts";
import { labelsChanged, type Predicate } from "../../runtime/controller.ts";
import type { Store } from "../../runtime/store.ts";
import type { Source } from "./app.ts";

/** After more changes, compiling all namespaces costs little more. */
const MAX_CHANGES = 2_048;

const namesChanged: Predicate = (change) => change.type !== "updated";

/** Passes the changes of namespaces on which the routes of this kind depend. */
export function routesChanged({ readsNamespaceLabels }: Pick<Source, "readsNamespaceLabels">): Predicate {
  return readsNamespaceLabels ? labelsChanged : namesChanged;
}

export function createNamespaceLog(
  source: Pick<Source, "readsNamespaceLabels">,
  namespaces: Pick<Store<KubeObject>, "onChange">,
) {
  const matters = routesChanged(source);
  /** The newest names, the latest last. */
  const names: string[] = [];
  let count = 0;
  namespaces.onChange((change) => {
    if (!matters(change)) return;
    count++;
    names.push(change.object.metadata.name ?? "");
    if (names.length > 2 * MAX_CHANGES) names.splice(0, MAX_CHANGES);
  });
  return {
    /** The number of all changes so far. */
    get count() {
      return count;
    },
    /** The namespaces that have changed since `count` had this value; undefined if they are not known any more. */
    since(at: number): ReadonlySet<string> | undefined {
      const missed = count - at;
      return missed > names.length ? undefined : new Set(names.slice(names.length - missed));
    },
  };
}
