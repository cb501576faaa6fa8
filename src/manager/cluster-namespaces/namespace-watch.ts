// Watches the namespaces of one cluster, until it is stopped. Its credentials may change; then it goes on with the new ones.
import type { MeshError } from "../../base/errors.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import { metadataOnly } from "../../kube/client/resource.ts";
import { NAMESPACES } from "../../kube/client/resources.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import type { KubeObject } from "../../kube/types.ts";
import { createReflector } from "../../runtime/reflector.ts";
import type { Store } from "../../runtime/store.ts";
import { memoryOf } from "./plain-namespace.ts";
import { createRemoteNamespaces } from "./remote-namespaces.ts";

export type RemoteClient = Pick<KubeClient, "request" | "watch" | "close">;

export interface NamespaceWatch {
  readonly server: string;
  readonly store: Store<KubeObject>;
  /** What fails: from the first failure before the list, and else once it has lasted. */
  readonly trouble: MeshError | undefined;
  /** Goes on with other credentials for the same server. */
  use(client: RemoteClient): void;
  stop(): Promise<void>;
}

interface NamespaceWatchOptions extends Pick<ProcessContext, "clock" | "random" | "log"> {
  readonly server: string;
  readonly client: RemoteClient;
  /** Something begins to fail, or works again. */
  readonly onHeard: () => void;
  /** Gets the memory of all that is known of the namespaces, in bytes. May end the watch. */
  readonly onSize: (bytes: number) => void;
}

/** A watch may break, or be refused for a moment. */
const TROUBLE_AFTER_MS = 30_000;

export function createNamespaceWatch({
  server,
  onHeard,
  onSize,
  clock,
  random,
  log,
  ...options
}: NamespaceWatchOptions): NamespaceWatch {
  const stopping = new AbortController();
  let { client } = options;
  let [storedBytes, listedBytes] = [0, 0];
  let failing: { readonly error: MeshError; readonly sinceMs: number } | undefined;
  const heard = (error: MeshError | undefined) => {
    const before = failing;
    failing = error && { error, sinceMs: before?.sinceMs ?? clock.monotonicMs() };
    if (before?.error.message !== error?.message) onHeard();
  };
  const remote = createRemoteNamespaces({
    client: () => client,
    clock,
    heard,
    listing(bytes) {
      listedBytes = bytes;
      onSize(storedBytes + listedBytes);
    },
  });
  const reflector = createReflector({ client: remote, resource: metadataOnly(NAMESPACES), clock, random, log });
  reflector.store.onChange((change) => {
    const bytes = memoryOf(change.object);
    storedBytes += change.type === "deleted" ? -bytes : bytes;
    if (change.type === "updated") storedBytes -= memoryOf(change.previous);
    onSize(storedBytes + listedBytes);
  });
  void reflector.start(stopping.signal);
  return {
    server,
    store: reflector.store,
    get trouble() {
      if (failing === undefined) return undefined;
      const hasLasted = clock.monotonicMs() >= failing.sinceMs + TROUBLE_AFTER_MS;
      return hasLasted || !reflector.store.hasSynced ? failing.error : undefined;
    },
    use(next) {
      const old = client;
      client = next;
      // Ends the old watch; the reflector goes on from the last version.
      old.close().catch(() => undefined);
    },
    async stop() {
      stopping.abort();
      await Promise.allSettled([reflector.stop(), client.close()]);
    },
  };
}
