// What the pods of a family may write and see, asked through their proxies.
import { readFileSync } from "node:fs";
import type { PodRunner } from "../pod-runner.ts";
import { createProbe, type Probe } from "../probe.ts";

/** Calls `ask` for each pod at the same time, and returns the results by pod, in the order of their names. */
export async function askPods<T>(runner: PodRunner, ask: (probe: Probe, pod: string) => Promise<T>): Promise<Map<string, T>> {
  const pods = [...runner.pods.values()].filter(({ isEnding }) => !isEnding).sort((a, b) => (a.name < b.name ? -1 : 1));
  const results = pods.map(async ({ name, processes: { access } }) => {
    if (access === undefined) throw new Error(`pod ${name} has no proxy yet`);
    const probe = createProbe({
      url: access.server,
      caPem: readFileSync(access.caFile, "utf8"),
      token: access.token,
      keep: false,
    });
    try {
      return [name, await ask(probe, name)] as const;
    } finally {
      await probe.close();
    }
  });
  return new Map(await Promise.all(results));
}

/** The namespaces of the ConfigMaps that each pod sees. Kubernetes makes one in every namespace. */
export function viewsOf(runner: PodRunner): Promise<Map<string, string[]>> {
  return askPods(runner, async (probe) => {
    const { body } = await probe.get("/api/v1/configmaps?fieldSelector=metadata.name%3Dkube-root-ca.crt");
    const { items } = JSON.parse(body.toString()) as { items: readonly { metadata: { namespace: string } }[] };
    return items.map(({ metadata }) => metadata.namespace).sort();
  });
}
