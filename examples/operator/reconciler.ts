// Makes the ConfigMap <foo>-data say what the Foo says, then notes in the status who did it. It writes only when something
// differs, so that a second run on the same state is silent.
import type { V1ConfigMap } from "@kubernetes/client-node";
import { type Foo, type FooStatus, nextStatus, wantedConfigMap } from "./foo.ts";
import type { Log } from "./log.ts";

/** What the reconciler needs of the API. Refusals carry the HTTP status as `code`. */
export interface FooApi {
  /** Undefined if there is none. */
  readConfigMap(namespace: string, name: string): Promise<V1ConfigMap | undefined>;
  createConfigMap(configMap: V1ConfigMap): Promise<void>;
  replaceConfigMap(configMap: V1ConfigMap): Promise<void>;
  /** The resource version in `foo` lets no two writers count the same work. */
  replaceStatus(foo: Foo, status: FooStatus): Promise<void>;
}

export interface ReconcilerOptions {
  readonly foos: ReadonlyMap<string, Foo>;
  readonly api: FooApi;
  readonly podName: string;
  readonly log: Log;
}

// How long the cache gets to catch up with what the API server already knows.
const STALE_RETRY_MS = 100;
const NOT_FOUND = 404;
const CONFLICT = 409;

/** Looks at one Foo; resolves with the milliseconds after which to look again, if it should. */
export function createReconciler(options: ReconcilerOptions): (key: string) => Promise<number | undefined> {
  return async (key) => {
    const foo = options.foos.get(key);
    // A Foo that is gone or going: the garbage collector takes the ConfigMap along.
    if (foo === undefined || foo.metadata?.deletionTimestamp !== undefined) return undefined;
    try {
      await writeConfigMap(foo, options);
      await writeStatus(foo, options);
      return undefined;
    } catch (error) {
      // No failure: the cache is behind (AlreadyExists is a 409 as well), or the namespace has just gone.
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
