// The desired route table of each app. A table is compiled again only if the spec or the namespaces have changed: with 10,000
// namespaces that takes half a second. Equal inputs give the same object, so the plan can reuse its comparisons.
//
// Invariant: a table is used only if the API server still had the specs of its objects after the compilation. After an outage each watch returns
// separately, so the manager may see a namespace before an earlier edit of the spec. That namespace must not get an owner by the
// old spec.
import type { Resource } from "../../kube/client/resource.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import { isStatus } from "../../kube/status.ts";
import type { KubeObject } from "../../kube/types.ts";
import type { RouteTable } from "../../route/table.ts";
import { labelsChanged } from "../../runtime/predicates.ts";
import { formatRequest } from "../../runtime/reconciler.ts";
import type { Store } from "../../runtime/store.ts";
import type { App, AppRef, AppSpec, Source, SourceObject } from "./app.ts";

export interface RoutesOptions {
  readonly client: Pick<KubeClient, "get">;
  readonly source: Pick<Source, "resource" | "appsOf" | "inputsOf">;
  readonly namespaces: Pick<Store<KubeObject>, "list" | "onChange">;
}

export interface Routes {
  /** The app from the watch; or, if an object was read that has a newer spec, the app with that object. Undefined if such an object belongs to another app. */
  newest(seen: App): App | undefined;
  /**
   * The table of the spec. "edited": the API server has a newer spec, which `newest` now returns. "gone": an object of the app is gone or
   * was created again under its name, which the watch will show.
   * @throws what reading the object throws
   */
  tableOf(app: App, spec: AppSpec, signal: AbortSignal): Promise<RouteTable | "edited" | "gone">;
  forget(app: Omit<AppRef, "kind">): void;
}

interface Compiled {
  /** Identifies the inputs: the objects, and the number of changes of namespaces. */
  readonly of: string;
  readonly table: RouteTable;
  /** The API server still had this spec after the compilation. */
  isChecked: boolean;
}

export function createRoutes({ client, source, namespaces }: RoutesOptions): Routes {
  const compiled = new Map<string, Compiled>();
  const read = new Map<string, readonly SourceObject[]>();
  let changes = 0;
  namespaces.onChange((change) => {
    if (labelsChanged(change)) changes++;
  });

  const compile = ({ ref, objects }: App, spec: AppSpec): Compiled => {
    const inputs = objects.map((object) => [object.metadata.uid, object.metadata.generation, source.inputsOf(object)]);
    const of = JSON.stringify([changes, inputs]);
    const before = compiled.get(formatRequest(ref));
    if (before?.of === of) return before;
    const facts = namespaces.list().map(({ metadata }) => ({ name: metadata.name ?? "", labels: metadata.labels ?? {} }));
    const next = { of, table: spec.compile(facts), isChecked: false };
    compiled.set(formatRequest(ref), next);
    return next;
  };

  return {
    newest(seen) {
      const before = read.get(formatRequest(seen.ref)) ?? [];
      const newer = before.filter((own) => seen.objects.some((object) => isNewer(own, object)));
      if (newer.length === 0) {
        read.delete(formatRequest(seen.ref));
        return seen;
      }
      const objects = seen.objects.map((object) => newer.find((own) => isNewer(own, object)) ?? object);
      return source.appsOf(objects).find(({ ref }) => ref.name === seen.ref.name);
    },
    async tableOf(app, spec, signal) {
      const entry = compile(app, spec);
      if (entry.isChecked) return entry.table;
      const current = await Promise.all(app.objects.map((object) => readAgain(client, source.resource, object, signal)));
      if (current.includes(undefined)) return "gone";
      const newer = current.filter((now, at) => isNewer(now, app.objects[at]));
      if (newer.length > 0) {
        read.set(
          formatRequest(app.ref),
          newer.filter((now) => now !== undefined),
        );
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

/** The object as the API server has it; undefined if it is gone or was created again. */
async function readAgain(
  client: Pick<KubeClient, "get">,
  resource: Resource<SourceObject>,
  { metadata: { namespace, name = "", uid } }: SourceObject,
  signal: AbortSignal,
): Promise<SourceObject | undefined> {
  try {
    const now = await client.get(resource, { namespace, name }, { signal });
    return now.metadata.uid === uid ? now : undefined;
  } catch (error) {
    if (isStatus(error, "NotFound")) return undefined;
    throw error;
  }
}

function isNewer(a: SourceObject | undefined, b: SourceObject | undefined): boolean {
  if (a === undefined || b === undefined) return false;
  return a.metadata.uid === b.metadata.uid && (a.metadata.generation ?? 0) > (b.metadata.generation ?? 0);
}
