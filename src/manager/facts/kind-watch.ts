// Watches one kind in the namespaces of the apps that ask for it. Invariant: a namespace is watched as long as
// one of its apps asks.
import type { Logger } from "../../base/log.ts";
import { type Resource, resourceName } from "../../kube/client/resource.ts";
import type { KubeObject } from "../../kube/types.ts";
import type { Informer, Informers } from "../../runtime/informers.ts";
import { formatRequest, type Request } from "../../runtime/reconciler.ts";
import type { Change } from "../../runtime/store.ts";

export type KindWatch<T extends KubeObject> = ReturnType<typeof createKindWatch<T>>;

interface KindWatchOptions<T extends KubeObject> {
  readonly resource: Resource<T>;
  /** Default: all objects of the namespace. */
  readonly labelSelector?: string;
  readonly informers: Pick<Informers, "acquire">;
  readonly onChange: (app: Request) => void;
  /** False for a change of which no app needs to know. Default: every change matters. */
  readonly matters?: (change: Change<T>) => boolean;
  readonly log: Logger;
}

export function createKindWatch<T extends KubeObject>(options: KindWatchOptions<T>) {
  const { resource, labelSelector = "", informers, onChange, matters = () => true, log } = options;
  const held = new Map<string, Informer<T>>();

  function hold(app: Request): Informer<T> {
    const key = formatRequest(app);
    const informer = informers.acquire(resource, { namespace: app.namespace, labelSelector });
    held.set(key, informer);
    const tell = () => {
      if (held.get(key) === informer) onChange(app);
    };
    informer.store.onChange((change) => {
      if (matters(change)) tell();
    });
    void informer.store.synced.then(tell); // a namespace without objects brings no change
    return informer;
  }

  return {
    /** The objects of the app's namespace, which is watched from now on; undefined until they are listed. */
    list(app: Request): readonly T[] | undefined {
      const { store } = held.get(formatRequest(app)) ?? hold(app);
      return store.hasSynced ? store.list() : undefined;
    },
    forget(app: Request): void {
      const key = formatRequest(app);
      const informer = held.get(key);
      held.delete(key);
      const fields = { namespace: app.namespace, resource: resourceName(resource) };
      informer?.release().catch((error: unknown) => log.error({ err: error, ...fields }, "a watch could not be ended"));
    },
  };
}
