// Clients that create Gadgets without pause, as dry runs, each with a name of its own by which its reviews are found.
import type { KubeClient } from "../../../src/kube/client/types.ts";
import { GADGETS } from "./gadgets.ts";

export interface Call {
  readonly namespace: string;
  readonly name: string;
  /** Milliseconds since 1970, as the operator's reviews have. */
  readonly fromMs: number;
  readonly toMs: number;
  /** Undefined if the API server accepted the object. */
  readonly error: string | undefined;
}

export interface AdmissionLoad {
  /** The calls that have ended. */
  readonly calls: readonly Call[];
  /** Waits until each client's call in flight has ended. */
  end(): Promise<void>;
}

/** Starts the clients. Each goes through the namespaces in turn. */
export function startAdmissionLoad(client: KubeClient, namespaces: readonly string[], clients = 8): AdmissionLoad {
  const calls: Call[] = [];
  let isOver = false;
  let count = 0;
  const run = async () => {
    while (!isOver) calls.push(await createGadget(client, namespaces[count % namespaces.length] ?? "", `load-${count++}`));
  };
  const running = Array.from({ length: clients }, run);
  return {
    calls,
    async end() {
      isOver = true;
      await Promise.all(running);
    },
  };
}

async function createGadget(client: KubeClient, namespace: string, name: string): Promise<Call> {
  const fromMs = Date.now();
  const error = await client.create(GADGETS, { metadata: { namespace, name } }, { dryRun: true, maxRetries: 0 }).then(
    () => undefined,
    (cause: unknown) => String(cause),
  );
  return { namespace, name, fromMs, toMs: Date.now(), error };
}
