// Which namespaces were created a moment ago: `kubectl create namespace` followed by `kubectl label namespace` takes them from the
// default subset before anything is in them. Used by the reconciler of apps.
import type { KubeObject } from "../../kube/types.ts";
import type { Store } from "../../runtime/store.ts";

const YOUNG_MS = 10_000;

/** Whether a namespace is young at `nowMs`; one that is not known is not. */
export function youngAt(namespaces: Pick<Store<KubeObject>, "get">, nowMs: number): (namespace: string) => boolean {
  return (name) => {
    const born = namespaces.get(name)?.metadata.creationTimestamp;
    return born !== undefined && nowMs - Date.parse(born) < YOUNG_MS;
  };
}
