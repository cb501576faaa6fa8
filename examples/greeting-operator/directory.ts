// The directory: one ConfigMap `greetings` in the operator's own namespace with a line for each Greeting of the cluster. No
// owner reference reaches across namespaces, so a Greeting's line is what its finalizer is there for. Lines are patched one by
// one; no reconcile sees or overwrites those of others.
import { CONFIG_MAPS, type ConfigMap } from "../../src/kube/client/resources.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";
import { isStatus } from "../../src/kube/status.ts";
import type { Store } from "../../src/runtime/store.ts";
import type { Greeting } from "./greeting.ts";

export const DIRECTORY_NAME = "greetings";

/** The Greetings whose line in this directory is not what their status says: the directory's watch queues them. */
export function amissIn({ data = {} }: ConfigMap, greetings: readonly Greeting[]): readonly Greeting[] {
  return greetings.filter((greeting) => greeting.status?.text !== undefined && data[keyOf(greeting)] !== greeting.status.text);
}

export interface Directory {
  enter(greeting: Greeting, text: string, signal: AbortSignal): Promise<void>;
  remove(greeting: Greeting, signal: AbortSignal): Promise<void>;
}

export function createDirectory(options: {
  readonly client: Pick<KubeClient, "create" | "patch">;
  readonly store: Store<ConfigMap>;
  readonly namespace: string;
  readonly fieldManager: string;
}): Directory {
  const { client, store, namespace, fieldManager } = options;
  const ref = { namespace, name: DIRECTORY_NAME };

  const write = async (key: string, line: string | null, signal: AbortSignal) => {
    if ((store.get(DIRECTORY_NAME, namespace)?.data?.[key] ?? null) === line) return;
    try {
      await client.patch(CONFIG_MAPS, ref, { type: "merge", body: { data: { [key]: line } } }, { signal, fieldManager });
    } catch (error) {
      if (!isStatus(error, "NotFound")) throw error;
      if (line !== null) await client.create(CONFIG_MAPS, { metadata: ref, data: { [key]: line } }, { signal, fieldManager });
    }
  };

  return {
    enter: (greeting, text, signal) => write(keyOf(greeting), text, signal),
    remove: (greeting, signal) => write(keyOf(greeting), null, signal),
  };
}

function keyOf({ metadata }: Greeting): string {
  return `${metadata.namespace}.${metadata.name}`;
}
