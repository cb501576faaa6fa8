// The namespaces of clusters as apps see them. Invariant: the changes of all clusters of a namespace at home are shown together, the first
// ones soon and later ones at a pace. Each time its apps get new tables, and no server of a cluster decides how often that is.
import { createClientPace } from "../../base/client-pace.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import type { KubeObject } from "../../kube/types.ts";
import { labelsChanged } from "../../runtime/controller.ts";
import { createStore, type Store } from "../../runtime/store.ts";

/** Makes a burst of changes one. */
const DEBOUNCE_MS = 100;
/** For each namespace at home. */
const PACE = { perSecond: 1, burst: 9 };

export function createShownNamespaces({ clock, log }: Pick<ProcessContext, "clock" | "log">) {
  const pace = createClientPace({ ...PACE, clock });
  /** By namespace at home: what is shown next. */
  const due = new Map<string, Set<() => void>>();

  const showLater = (namespace: string, show: () => void) => {
    const waiting = due.get(namespace);
    if (waiting !== undefined) return void waiting.add(show);
    due.set(namespace, new Set([show]));
    clock.after(Math.max(DEBOUNCE_MS, Math.ceil(pace.charge(namespace, 0))), () => {
      const all = due.get(namespace) ?? [];
      due.delete(namespace);
      pace.charge(namespace, 1);
      for (const each of all) each();
    });
  };

  /**
   * What apps see of the store of a cluster.
   * @param onShown called when the namespaces are listed, and after each change of what is shown
   */
  return function follow(namespace: string, followed: Store<KubeObject>, onShown: () => void): Store<KubeObject> {
    const store = createStore<KubeObject>((error) => log.error({ err: error }, "store handler failed"));
    const changed = new Set<string>();
    const show = () => {
      for (const name of changed) {
        const [before, now] = [store.get(name), followed.get(name)];
        if (now !== undefined) store.upsert(now);
        else if (before !== undefined) store.remove(before);
      }
      changed.clear();
      onShown();
    };
    followed.onChange((change) => {
      if (!followed.hasSynced || !labelsChanged(change)) return;
      changed.add(change.object.metadata.name ?? "");
      if (store.hasSynced) showLater(namespace, show);
    });
    void followed.synced.then(() => {
      store.replace(followed.list());
      onShown();
    });
    return store;
  };
}
