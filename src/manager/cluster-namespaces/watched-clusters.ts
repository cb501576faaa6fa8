// The clusters whose namespaces this manager watches, and what is known of each. Invariant: a cluster that cannot be watched changes
// nothing for another one. The leader's controller fills it; apps and statuses read it.

import type { X509Certificate } from "node:crypto";
import { createFairMemory, type MemoryHold } from "../../base/fair-memory.ts";
import type { Runnable } from "../../base/lifecycle.ts";
import { createListeners } from "../../base/listeners.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import { createKubeClient } from "../../kube/client/client.ts";
import type { KubeConnection } from "../../kube/client/connection.ts";
import type { KubeObject } from "../../kube/types.ts";
import { formatRequest, parseRequest, type Request } from "../../runtime/reconciler.ts";
import type { Store } from "../../runtime/store.ts";
import { type CredentialEnd, endsOfConnection } from "./credential-ends.ts";
import { createNamespaceWatch, type NamespaceWatch, type RemoteClient } from "./namespace-watch.ts";
import { type NamespacesState, NOT_LISTED_YET, watchState } from "./namespaces-state.ts";
import type { TenantConnection } from "./read-kubeconfig.ts";
import { MAX_ANSWER_BYTES } from "./remote-namespaces.ts";
import { createShownNamespaces } from "./shown-namespaces.ts";

interface Watched {
  /** Why there is no watch. */
  problem?: NamespacesState | undefined;
  watch?: NamespaceWatch | undefined;
  /** The namespaces of the watch for apps. */
  shown?: Store<KubeObject> | undefined;
  /** The last credentials. Absent without a watch. */
  credentials?: Omit<TenantConnection, "server"> | undefined;
  ends: readonly CredentialEnd[];
  /** The certificate that the server of the watch showed last. */
  certificate?: X509Certificate | undefined;
  /** What the watch takes. */
  memory?: MemoryHold | undefined;
  /** The cluster had to give way, and is not watched before this time. */
  refusedUntilMs?: number;
  /** What was last told to the listeners. */
  told: string;
}

interface WatchedClustersOptions extends Pick<ProcessContext, "clock" | "random" | "log"> {
  readonly userAgent: string;
  readonly maxMemoryBytes?: number;
  /** Default: createKubeClient. */
  readonly connect?: (connection: KubeConnection) => RemoteClient;
}

export type WatchedClusters = ReturnType<typeof createWatchedClusters>;

/** OpenSSL's code, in the message of a trouble. */
const SERVER_CERTIFICATE_ENDED = "CERT_HAS_EXPIRED";
/**
 * What the namespaces of all other clusters may take in the manager. Each watch counts with the largest answer that it may read, so there
 * are at most 384. When more is needed, the manager stops watching the largest cluster of the namespace at home whose clusters take most.
 */
const MAX_MEMORY_BYTES = 384 * 1024 * 1024;
const REFUSED_MS = 5 * 60_000;

export function createWatchedClusters(options: WatchedClustersOptions) {
  const { userAgent, connect = createKubeClient, maxMemoryBytes = MAX_MEMORY_BYTES, clock, random, log } = options;
  const memory = createFairMemory(maxMemoryBytes);
  const follow = createShownNamespaces({ clock, log });
  /** By "namespace/name" of the MeshCluster. */
  const clusters = new Map<string, Watched>();
  const onNamespaces = createListeners<Request>();
  const onState = createListeners<Request>();

  const stateOf = (cluster: Request): NamespacesState => {
    const { watch, problem } = clusters.get(formatRequest(cluster)) ?? {};
    if (problem !== undefined) return problem;
    return watch === undefined ? NOT_LISTED_YET : watchState(watch);
  };
  const endsOf = (cluster: Request): readonly CredentialEnd[] => {
    const { watch, ends = [] } = clusters.get(formatRequest(cluster)) ?? {};
    const isRefused = watch?.trouble?.message.includes(SERVER_CERTIFICATE_ENDED) ?? false;
    return isRefused ? [...ends, { of: "ServerCertificate", endsMs: undefined }] : ends;
  };
  const tell = (key: string) => {
    const entry = clusters.get(key);
    const state = JSON.stringify([stateOf(parseRequest(key)), endsOf(parseRequest(key))]);
    if (entry === undefined || entry.told === state) return;
    entry.told = state;
    onState.tell(parseRequest(key));
  };
  const entryOf = (key: string): Watched => {
    const entry = clusters.get(key) ?? { told: "", ends: [] };
    clusters.set(key, entry);
    return entry;
  };
  const stopWatch = (key: string) => {
    const entry = clusters.get(key);
    const watch = entry?.watch;
    if (entry === undefined || watch === undefined) return;
    Object.assign(entry, { watch: undefined, shown: undefined, credentials: undefined, certificate: undefined, ends: [] });
    entry.memory?.end();
    watch.stop().catch((error: unknown) => log.error({ err: error, cluster: key }, "a watch could not be ended"));
    onNamespaces.tell(parseRequest(key));
  };
  const giveWay = (key: string) => {
    const { namespace } = parseRequest(key);
    const bound = `the namespaces of all other clusters may take ${maxMemoryBytes / 1024 / 1024} MiB in the manager`;
    const message = `${bound}, and those of the clusters of namespace ${namespace} take most: let fewer be watched; the manager tries again after 5 min`;
    Object.assign(entryOf(key), { problem: { reason: "TooMany", message }, refusedUntilMs: clock.monotonicMs() + REFUSED_MS });
    stopWatch(key);
    tell(key);
  };
  const startWatch = (key: string, server: string, client: RemoteClient): void => {
    const hold = memory.of(parseRequest(key).namespace).hold(() => giveWay(key));
    const watch = createNamespaceWatch({
      server,
      client,
      clock,
      random,
      log: log.child({ meshCluster: key }),
      onHeard: () => tell(key),
      onSize: (bytes) => hold.set(MAX_ANSWER_BYTES + bytes),
    });
    const isCurrent = () => clusters.get(key)?.watch === watch;
    const shown = follow(parseRequest(key).namespace, watch.store, () => {
      if (!isCurrent()) return;
      onNamespaces.tell(parseRequest(key));
      tell(key);
    });
    Object.assign(entryOf(key), { watch, shown, memory: hold });
    hold.set(MAX_ANSWER_BYTES);
  };

  return {
    stateOf,
    /** When the credentials of the watch end, and the certificate of the server. */
    endsOf,
    /** The cluster's namespaces; undefined until they are listed. */
    storeOf(cluster: Request): Store<KubeObject> | undefined {
      const store = clusters.get(formatRequest(cluster))?.shown;
      return store?.hasSynced ? store : undefined;
    },
    /** Watches the cluster's namespaces by this connection from now on. Returns false if there is no memory for it. */
    use(cluster: Request, { server, ...credentials }: TenantConnection): boolean {
      const key = formatRequest(cluster);
      const entry = entryOf(key);
      if (clock.monotonicMs() < (entry.refusedUntilMs ?? 0)) return false;
      entry.problem = undefined;
      const onServerCertificate = (certificate: X509Certificate) => {
        if (entry.credentials !== credentials) return;
        Object.assign(entry, { certificate, ends: endsOfConnection(credentials, certificate) });
        tell(key);
      };
      const client = connect({ server, ...credentials, userAgent, maxAnswerBytes: MAX_ANSWER_BYTES, onServerCertificate });
      if (entry.watch?.server === server) entry.watch.use(client);
      else {
        stopWatch(key);
        startWatch(key, server, client);
      }
      if (entry.watch !== undefined)
        Object.assign(entry, { credentials, ends: endsOfConnection(credentials, entry.certificate) });
      tell(key);
      return entry.watch !== undefined;
    },
    /** Ends the watch, since there are no credentials for it. */
    refuse(cluster: Request, problem: NamespacesState): void {
      const key = formatRequest(cluster);
      entryOf(key).problem = problem;
      stopWatch(key);
      tell(key);
    },
    /** Tells the listeners a state that only time has changed: trouble that has lasted. */
    look: (cluster: Request) => tell(formatRequest(cluster)),
    /** Ends the watches of all other clusters of the namespace. */
    keep(namespace: string, names: readonly string[]): void {
      const kept = new Set(names.map((name) => formatRequest({ namespace, name })));
      for (const key of [...clusters.keys()]) {
        if (parseRequest(key).namespace !== namespace || kept.has(key)) continue;
        stopWatch(key);
        clusters.delete(key);
      }
    },
    /** Calls the listener with each cluster whose namespaces, or their labels, have changed, or are known or unknown now. */
    onNamespaces: onNamespaces.add,
    /** Calls the listener with each cluster whose state has changed. */
    onState: onState.add,
    /** Ends all watches with the leadership. */
    runnable: {
      name: "namespaces of other clusters",
      start: async () => undefined,
      stop: async () => {
        const ending = [...clusters.values()].map((each) => {
          each.memory?.end();
          return each.watch?.stop();
        });
        clusters.clear();
        await Promise.all(ending);
      },
    } satisfies Runnable,
  };
}
