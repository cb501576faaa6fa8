// Shared reflectors: callers that request the same kind with the same selectors get the same store.
// Invariant: there is one list and one watch for both, from the first acquire to the last release.
import type { Runnable } from "../base/lifecycle.ts";
import { type Resource, resourceName } from "../kube/client/resource.ts";
import type { SelectorOptions } from "../kube/client/types.ts";
import type { KubeObject } from "../kube/types.ts";
import { createReflector, type Reflector, type ReflectorOptions } from "./reflector.ts";
import type { Store } from "./store.ts";

export interface Informer<T extends KubeObject> {
  readonly store: Store<T>;
  /** Ends this use. The last release stops the reflector. */
  release(): Promise<void>;
}

export interface Informers extends Runnable {
  /** The store of a kind, until the process ends. */
  store<T extends KubeObject>(resource: Resource<T>, selectors?: SelectorOptions): Store<T>;
  /** The store of a kind until the release, for kinds that are not always watched. */
  acquire<T extends KubeObject>(resource: Resource<T>, selectors?: SelectorOptions): Informer<T>;
  /** Resolves once all stores that exist at this moment have synced. */
  readonly synced: Promise<void>;
}

interface Shared {
  readonly reflector: Reflector<KubeObject>;
  shares: number;
}

/**
 * A store that is requested after `start` starts immediately. `start` does not wait for the first lists,
 * since a kind with a missing CRD would block everything; controllers wait for their own stores.
 */
export function createInformers(options: Omit<ReflectorOptions<KubeObject>, "resource" | "selectors" | "transform">): Informers {
  const shared = new Map<string, Shared>();
  let running: AbortSignal | undefined;

  function acquire<T extends KubeObject>(resource: Resource<T>, selectors: SelectorOptions = {}): Informer<T> {
    const key = keyOfShare(resource, selectors);
    let entry = shared.get(key);
    if (entry === undefined) {
      entry = { reflector: createReflector({ ...options, resource: resource as Resource, selectors }), shares: 0 };
      shared.set(key, entry);
      if (running !== undefined) void entry.reflector.start(running);
    }
    const held = entry;
    held.shares++;
    let released = false;
    return {
      store: held.reflector.store as unknown as Store<T>, // the key contains the resource, which determines the type
      async release() {
        if (released) return;
        released = true;
        if (--held.shares > 0) return;
        shared.delete(key);
        await held.reflector.stop();
      },
    };
  }

  return {
    name: "informers",
    acquire,
    store: (resource, selectors) => acquire(resource, selectors).store,
    get synced() {
      return Promise.all([...shared.values()].map(({ reflector }) => reflector.store.synced)).then(() => {});
    },
    async start(signal) {
      running = signal;
      await Promise.all([...shared.values()].map(({ reflector }) => reflector.start(signal)));
    },
    async stop() {
      await Promise.all([...shared.values()].map(({ reflector }) => reflector.stop()));
      shared.clear();
    },
  };
}

function keyOfShare(resource: Resource, { namespace = "", labelSelector = "", fieldSelector = "" }: SelectorOptions): string {
  return JSON.stringify([
    resourceName(resource),
    resource.version,
    resource.metadataOnly === true,
    namespace,
    labelSelector,
    fieldSelector,
  ]);
}
