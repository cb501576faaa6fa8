// Follows a root ShardingConfig while a test runs, for test/chaos/root-history.ts: a watch delivers every version in order, and reads
// say since when a version can exist at the earliest.
import { setTimeout as sleep } from "node:timers/promises";
import { SHARDING_CONFIGS } from "../../../src/api/resources.ts";
import type { ShardingConfig } from "../../../src/api/sharding-config.ts";
import type { KubeClient } from "../../../src/kube/client/types.ts";
import { isStatus } from "../../../src/kube/status.ts";

const REQUEST_MS = 3_000;
const READ_EVERY_MS = 200;

export interface RootRef {
  readonly namespace: string;
  readonly name: string;
}

export interface RootFollower {
  /** Gets every version, in order. */
  add(root: ShardingConfig): void;
  /** Gets what a read returned that began at this time. */
  noteRead(root: ShardingConfig, beganMs: number): void;
}

/** Ends with the signal. */
export async function followRoot(client: KubeClient, root: RootRef, follower: RootFollower, signal: AbortSignal): Promise<void> {
  await Promise.all([watchRoot(client, root, follower, signal), readRoot(client, root, follower, signal)]);
}

/** A new watch goes on where the last one ended. */
async function watchRoot(
  client: KubeClient,
  { namespace, name }: RootRef,
  { add }: RootFollower,
  signal: AbortSignal,
): Promise<void> {
  let resourceVersion: string | undefined;
  while (!signal.aborted) {
    const from = resourceVersion === undefined ? {} : { resourceVersion };
    const fieldSelector = `metadata.name=${name}`;
    try {
      for await (const event of client.watch(SHARDING_CONFIGS, { namespace, fieldSelector, signal, ...from })) {
        resourceVersion = event.object.metadata.resourceVersion;
        if (event.type !== "BOOKMARK") add(event.object);
      }
    } catch (error) {
      // The API server is down, or has forgotten the version: then it sends the newest one first.
      if (isStatus(error, "Expired", "Gone")) resourceVersion = undefined;
    }
    await sleep(100, undefined, { signal }).catch(() => undefined);
  }
}

async function readRoot(client: KubeClient, ref: RootRef, { noteRead }: RootFollower, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const beganMs = Date.now();
    await client.get(SHARDING_CONFIGS, ref, { timeoutMs: REQUEST_MS, signal }).then(
      (root) => noteRead(root, beganMs),
      () => undefined,
    );
    await sleep(READ_EVERY_MS, undefined, { signal }).catch(() => undefined);
  }
}
