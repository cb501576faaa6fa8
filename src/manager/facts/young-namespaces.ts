// Finds namespaces that were just created: `kubectl create namespace` and then `kubectl label namespace`
// moves a namespace from the default subset while it is still empty.
import type { KubeObject } from "../../kube/types.ts";
import type { Store } from "../../runtime/store.ts";

const YOUNG_MS = 10_000;

/** True for a namespace that is young at `nowMs`; false for an unknown namespace. */
export function youngAt(namespaces: Pick<Store<KubeObject>, "get">, nowMs: number): (namespace: string) => boolean {
  return (name) => {
    const born = namespaces.get(name)?.metadata.creationTimestamp;
    return born !== undefined && nowMs - Date.parse(born) < YOUNG_MS;
  };
}
