// What a thief of the manager's token can do: a client with its kubeconfig, and whether the API server refuses a request by a policy of the chart.
import { createKubeClient } from "../../src/kube/client/client.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";
import { loadConnection } from "../../src/runtime/kubeconfig.ts";

export async function withStolenToken<T>(kubeconfig: string, run: (client: KubeClient) => Promise<T>): Promise<T> {
  const client = createKubeClient(await loadConnection({ kubeconfig, env: {}, userAgent: "thief" }));
  try {
    return await run(client);
  } finally {
    await client.close();
  }
}

/** The message of the policy that refuses the request; undefined if it passes, or if something else refuses it. */
export async function refusedByPolicy(request: Promise<unknown>): Promise<string | undefined> {
  try {
    await request;
    return undefined;
  } catch (error) {
    return /ValidatingAdmissionPolicy '(ctrlmesh-manager-[a-z]+)'.*denied request: (.*)/.exec(String(error))?.slice(1).join(": ");
  }
}
