// The compiled route of each app, made anew only when its spec or the namespaces have changed: a reconcile is mostly about pods and
// proxies, and 10,000 namespaces against many rules are half a second of work. The same route is also the same object, by which
// digests and comparisons are remembered. Used by the VirtualApp reconciler.
import type { VirtualAppSpec } from "../../../api/virtual-app.ts";
import type { KubeObject } from "../../../kube/types.ts";
import type { RouteTable } from "../../../route/table.ts";
import { labelsChanged } from "../../../runtime/predicates.ts";
import type { Store } from "../../../runtime/store.ts";
import { compileRoute, type NamespaceFacts } from "./compile-route.ts";

export interface CompiledRoutes {
  /** @param revision names this spec of this app: uid and generation */
  of(app: string, revision: string, spec: VirtualAppSpec): RouteTable;
  forget(app: string): void;
}

interface Compiled {
  readonly of: string;
  readonly table: RouteTable;
}

export function createCompiledRoutes(namespaces: Pick<Store<KubeObject>, "list" | "onChange">): CompiledRoutes {
  const known = new Map<string, Compiled>();
  let changes = 0;
  namespaces.onChange((change) => {
    if (labelsChanged(change)) changes++;
  });
  return {
    of(app, revision, spec) {
      const of = `${revision}/${changes}`;
      const before = known.get(app);
      if (before?.of === of) return before.table;
      const table = compileRoute(spec, namespaces.list().map(namespaceFacts));
      known.set(app, { of, table });
      return table;
    },
    forget: (app) => known.delete(app),
  };
}

function namespaceFacts({ metadata }: KubeObject): NamespaceFacts {
  return { name: metadata.name ?? "", labels: metadata.labels ?? {} };
}
