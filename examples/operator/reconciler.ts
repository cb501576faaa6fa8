// Writes the message of a Foo into the ConfigMap <foo>-data, then the name of this pod into the status. It writes only differences, so a second
// run on the same state writes nothing.
import type { V1ConfigMap } from "@kubernetes/client-node";
import { type Foo, type FooStatus, nextStatus, wantedConfigMap } from "./foo.ts";
import type { Log } from "./log.ts";

/** The API calls of the reconciler. Errors have the HTTP status as `code`. */
export interface FooApi {
  /** Undefined if there is none. */
  readConfigMap(namespace: string, name: string): Promise<V1ConfigMap | undefined>;
  createConfigMap(configMap: V1ConfigMap): Promise<void>;
  replaceConfigMap(configMap: V1ConfigMap): Promise<void>;
  /** The resource version in `foo` is a precondition, so that two writers cannot both count. */
  replaceStatus(foo: Foo, status: FooStatus): Promise<void>;
}

export interface ReconcilerOptions {
  readonly foos: ReadonlyMap<string, Foo>;
  readonly api: FooApi;
  readonly podName: string;
  readonly log: Log;
}

// How long the cache may take to catch up with the API server.
const STALE_RETRY_MS = 100;
const NOT_FOUND = 404;
const CONFLICT = 409;

/** Reconciles one Foo. Resolves with the milliseconds until the next reconcile, if one is needed. */
export function createReconciler(options: ReconcilerOptions): (key: string) => Promise<number | undefined> {
  return async (key) => {
    const foo = options.foos.get(key);
    // The Foo is deleted or in deletion: the garbage collector deletes the ConfigMap.
    if (foo === undefined || foo.metadata?.deletionTimestamp !== undefined) return undefined;
    try {
      await writeConfigMap(foo, options);
      await writeStatus(foo, options);
      return undefined;
    } catch (error) {
      // No failure: the cache is behind (AlreadyExists is also a 409), or the namespace was just deleted.
      const { code } = error as { readonly code?: unknown };
      if (code === CONFLICT) return STALE_RETRY_MS;
      if (code === NOT_FOUND) return undefined;
      throw error;
    }
  };
}

async function writeConfigMap(foo: Foo, { api }: ReconcilerOptions): Promise<void> {
  const existing = await api.readConfigMap(foo.metadata?.namespace ?? "", `${foo.metadata?.name ?? ""}-data`);
  const wanted = wantedConfigMap(foo, existing);
  if (existing === undefined) await api.createConfigMap(wanted);
  else if (wanted !== existing) await api.replaceConfigMap(wanted);
}

async function writeStatus(foo: Foo, { api, podName, log }: ReconcilerOptions): Promise<void> {
  const status = nextStatus(foo, podName);
  if (status === undefined) return;
  await api.replaceStatus(foo, status);
  const { namespace, name } = foo.metadata ?? {};
  log.info("reconciled", { namespace, name, generation: status.observedGeneration, count: status.count });
}
