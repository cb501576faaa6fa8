// Plays the StatefulSet controller, which localkube does not have: the StatefulSet has as many pods as it asks for.
import { setTimeout as delay } from "node:timers/promises";
import { STATEFUL_SETS } from "../../../src/kube/client/resources.ts";
import type { World } from "../world.ts";
import type { Family } from "./family.ts";

const EVERY_MS = 100;

/** Starts missing pods and ends surplus ones, until an error or the signal. */
export async function keepPods(world: World, { setting, statefulSet, podOf }: Family, signal: AbortSignal): Promise<never> {
  const ref = { namespace: setting.namespace, name: statefulSet };
  for (;;) {
    const { spec } = await world.client.get(STATEFUL_SETS, ref);
    const wanted = Array.from({ length: spec?.replicas ?? 1 }, (_, ordinal) => podOf(ordinal));
    const running = new Set(world.pods.map(({ name }) => name));
    const missing = wanted.filter(({ name }) => !running.has(name));
    const surplus = [...running].filter((name) => wanted.every((plan) => plan.name !== name));
    await Promise.all([...missing.map(world.startPod), ...surplus.map(world.endPod)]);
    await delay(EVERY_MS, undefined, { signal });
  }
}

/** What `kubectl scale` does. */
export async function scale({ client }: World, { setting, statefulSet }: Family, replicas: number): Promise<void> {
  const ref = { namespace: setting.namespace, name: statefulSet };
  await client.patch(STATEFUL_SETS, ref, { type: "merge", body: { spec: { replicas } } });
}
