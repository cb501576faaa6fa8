// The directory: one ConfigMap `greetings` in the operator's own namespace, with a line for each Greeting in the cluster. An owner reference
// does not work across namespaces, so a finalizer removes the line. Invariant: each line is patched alone, so that no reconcile overwrites
// lines of other Greetings.
import { CONFIG_MAPS, type ConfigMap, isStatus, type KubeClient, type Store } from "../../src/runtime/index.ts";
import type { Greeting } from "./greeting.ts";

export const DIRECTORY_NAME = "greetings";

/** The Greetings with a line that differs from their status. The watch of the directory queues them. */
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
}): Directory {
  const { client, store, namespace } = options;
  const ref = { namespace, name: DIRECTORY_NAME };

  const write = async (key: string, line: string | null, signal: AbortSignal) => {
    if ((store.get(DIRECTORY_NAME, namespace)?.data?.[key] ?? null) === line) return;
    try {
      await client.patch(CONFIG_MAPS, ref, { type: "merge", body: { data: { [key]: line } } }, { signal });
    } catch (error) {
      if (!isStatus(error, "NotFound")) throw error;
      if (line !== null) await client.create(CONFIG_MAPS, { metadata: ref, data: { [key]: line } }, { signal });
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
