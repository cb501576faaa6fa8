// Watches the Services of the namespaces that have an app with webhooks. Invariant: a namespace is watched as
// long as one of its apps asks.
import type { Logger } from "../../base/log.ts";
import { SERVICES, type Service } from "../../kube/client/resources.ts";
import type { Informer, Informers } from "../../runtime/informers.ts";
import { formatRequest, type Request } from "../../runtime/reconciler.ts";

export type ServiceWatch = ReturnType<typeof createServiceWatch>;

interface ServiceWatchOptions {
  readonly informers: Pick<Informers, "acquire">;
  readonly onChange: (app: Request) => void;
  readonly log: Logger;
}

export function createServiceWatch({ informers, onChange, log }: ServiceWatchOptions) {
  const held = new Map<string, Informer<Service>>();

  function hold(app: Request): Informer<Service> {
    const key = formatRequest(app);
    const informer = informers.acquire(SERVICES, { namespace: app.namespace });
    held.set(key, informer);
    const tell = () => {
      if (held.get(key) === informer) onChange(app);
    };
    informer.store.onChange(tell);
    void informer.store.synced.then(tell); // there may be no Service
    return informer;
  }

  return {
    /** The Services of the app's namespace, which is watched from now on; undefined until they are listed. */
    list(app: Request): readonly Service[] | undefined {
      const { store } = held.get(formatRequest(app)) ?? hold(app);
      return store.hasSynced ? store.list() : undefined;
    },
    forget(app: Request): void {
      const key = formatRequest(app);
      const informer = held.get(key);
      held.delete(key);
      const { namespace } = app;
      informer?.release().catch((error: unknown) => log.error({ err: error, namespace }, "watch of Services could not be ended"));
    },
  };
}
