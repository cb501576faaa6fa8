// The desired route table of each app. A table is compiled again only if the spec or the namespaces have changed: with 10,000
// namespaces that takes half a second. Equal inputs give the same object, so the plan can reuse its comparisons.
//
// Invariant: a table is used only if the API server still had its spec after the compilation. After an outage each watch returns
// separately, so the manager may see a namespace before an earlier edit of the spec. That namespace must not get an owner by the
// old spec.
import type { KubeClient } from "../../kube/client/types.ts";
import { isStatus } from "../../kube/status.ts";
import type { KubeObject } from "../../kube/types.ts";
import type { RouteTable } from "../../route/table.ts";
import { labelsChanged } from "../../runtime/predicates.ts";
import { formatRequest } from "../../runtime/reconciler.ts";
import type { Store } from "../../runtime/store.ts";
import type { App, AppRef, AppSpec, Source, SourceObject } from "./app.ts";

export interface RoutesOptions<O extends SourceObject> {
  readonly client: Pick<KubeClient, "get">;
  readonly source: Pick<Source<O>, "resource">;
  readonly namespaces: Pick<Store<KubeObject>, "list" | "onChange">;
}

export interface Routes<O extends SourceObject> {
  /** The object from the watch, or the object that was read if its spec is newer. */
  newest(seen: O): O;
  /**
   * The table of the spec. "edited": the API server has a newer spec, which `newest` now returns. "gone": the object is gone or
   * was created again under its name, which the watch will show.
   * @throws what reading the object throws
   */
  tableOf(app: App, spec: AppSpec, signal: AbortSignal): Promise<RouteTable | "edited" | "gone">;
  forget(app: Omit<AppRef, "kind">): void;
}

interface Compiled {
  /** Identifies the inputs: uid, generation and the number of changes of namespaces. */
  readonly of: string;
  readonly table: RouteTable;
  /** The API server still had this spec after the compilation. */
  isChecked: boolean;
}

export function createRoutes<O extends SourceObject>({ client, source, namespaces }: RoutesOptions<O>): Routes<O> {
  const compiled = new Map<string, Compiled>();
  const read = new Map<string, O>();
  let changes = 0;
  namespaces.onChange((change) => {
    if (labelsChanged(change)) changes++;
  });

  const compile = ({ ref, object }: App, spec: AppSpec): Compiled => {
    const { uid, generation } = object.metadata;
    const of = `${uid}/${generation}/${changes}`;
    const before = compiled.get(formatRequest(ref));
    if (before?.of === of) return before;
    const facts = namespaces.list().map(({ metadata }) => ({ name: metadata.name ?? "", labels: metadata.labels ?? {} }));
    const next = { of, table: spec.compile(facts), isChecked: false };
    compiled.set(formatRequest(ref), next);
    return next;
  };

  return {
    newest(seen) {
      const key = formatRequest({ namespace: seen.metadata.namespace ?? "", name: seen.metadata.name ?? "" });
      const own = read.get(key);
      if (own !== undefined && isNewer(own, seen)) return own;
      read.delete(key);
      return seen;
    },
    async tableOf(app, spec, signal) {
      const entry = compile(app, spec);
      if (entry.isChecked) return entry.table;
      const { namespace, name } = app.ref;
      const now = await client.get(source.resource, { namespace, name }, { signal }).catch((error: unknown) => {
        if (isStatus(error, "NotFound")) return undefined;
        throw error;
      });
      if (now === undefined || now.metadata.uid !== app.object.metadata.uid) return "gone";
      if (isNewer(now, app.object)) {
        read.set(formatRequest(app.ref), now);
        return "edited";
      }
      entry.isChecked = true;
      return entry.table;
    },
    forget(app) {
      compiled.delete(formatRequest(app));
      read.delete(formatRequest(app));
    },
  };
}

function isNewer(a: SourceObject, b: SourceObject): boolean {
  return a.metadata.uid === b.metadata.uid && (a.metadata.generation ?? 0) > (b.metadata.generation ?? 0);
}
