// Watches all pods of the namespaces with an app, since a pod that loses a label still runs. Invariant: a
// namespace's pods are undefined, not an empty list, until this watch has listed them and has called the
// `onListed` handlers. One watch begins when this replica becomes the leader, so its list contains every pod
// that an earlier leader served. Another one runs before that, for pod-history.ts.
import type { Runnable } from "../../base/lifecycle.ts";
import type { Logger } from "../../base/log.ts";
import { PODS, type Pod } from "../../kube/client/resources.ts";
import type { KubeObject } from "../../kube/types.ts";
import type { Informer, Informers } from "../../runtime/informers.ts";
import type { Change, ChangeHandler } from "../../runtime/store.ts";
import type { Apps } from "../apps/app.ts";

export interface PodLists {
  list(namespace: string): readonly Pod[] | undefined;
  get(name: string, namespace: string): Pod | undefined;
}

export interface PodWatch extends PodLists, Runnable {
  onChange(handler: ChangeHandler<Pod>): void;
  /** With each namespace whose pods have been listed. */
  onListed(handler: (namespace: string) => void): void;
  /** With each namespace whose last app is gone. */
  onLeft(handler: (namespace: string) => void): void;
}

interface PodWatchOptions {
  readonly informers: Pick<Informers, "acquire">;
  readonly apps: Pick<Apps, "onChange">;
  readonly log: Logger;
}

interface Watched {
  readonly informer: Informer<Pod>;
  /** The apps as kind/name. */
  readonly apps: Set<string>;
  isListed: boolean;
}

export function createPodWatch({ informers, apps, log }: PodWatchOptions): PodWatch {
  const watched = new Map<string, Watched>();
  const changeHandlers: ChangeHandler<Pod>[] = [];
  const listedHandlers: ((namespace: string) => void)[] = [];
  const leftHandlers: ((namespace: string) => void)[] = [];
  let unsubscribe: () => void = () => undefined;

  const listedStore = (namespace: string) => {
    const entry = watched.get(namespace);
    return entry?.isListed ? entry.informer.store : undefined;
  };

  function enter(namespace: string): Watched {
    const informer = informers.acquire(PODS, { namespace });
    const entry = { informer, apps: new Set<string>(), isListed: false };
    watched.set(namespace, entry);
    informer.store.onChange((change) => {
      if (watched.get(namespace) === entry) for (const handler of changeHandlers) handler(change);
    });
    void informer.store.synced.then(() => {
      if (watched.get(namespace) !== entry) return;
      entry.isListed = true;
      for (const handler of listedHandlers) handler(namespace);
    });
    return entry;
  }

  function leave(namespace: string, { informer }: Watched): void {
    watched.delete(namespace);
    for (const handler of leftHandlers) handler(namespace);
    informer.release().catch((error: unknown) => log.error({ err: error, namespace }, "watch of pods could not be ended"));
  }

  function follow({ type, object }: Change<KubeObject>, kind: string): void {
    const { namespace = "", name = "" } = object.metadata;
    const app = `${kind}/${name}`;
    const entry = watched.get(namespace);
    if (type !== "deleted") {
      (entry ?? enter(namespace)).apps.add(app);
    } else if (entry?.apps.delete(app) && entry.apps.size === 0) {
      leave(namespace, entry);
    }
  }

  return {
    name: "pod watch",
    list: (namespace) => listedStore(namespace)?.list(),
    get: (name, namespace) => listedStore(namespace)?.get(name, namespace),
    onChange: (handler) => void changeHandlers.push(handler),
    onListed: (handler) => void listedHandlers.push(handler),
    onLeft: (handler) => void leftHandlers.push(handler),
    async start() {
      unsubscribe = apps.onChange(follow);
    },
    async stop() {
      unsubscribe();
      const informersOf = [...watched.values()].map(({ informer }) => informer);
      watched.clear();
      await Promise.all(informersOf.map((informer) => informer.release()));
    },
  };
}
