// Which version of a kind the API server serves, for kinds that another project defines and that may be absent. Invariant: an absent
// kind is a normal answer, not an error. Callers ask at each reconcile. The API server is asked again after AGAIN_MS.
import type { Clock } from "../base/clock.ts";
import type { KubeClient } from "../kube/client/types.ts";
import { isStatus } from "../kube/status.ts";
import type { GroupResource } from "../kube/types.ts";

/** For how long an answer is used: a CRD that is installed or removed is noticed at the latest after this time. */
export const AGAIN_MS = 30_000;

export interface ServedVersion<V extends string> {
  /** The first of the versions that the API server serves; undefined if it serves none. @throws if the API server does not answer */
  read(signal: AbortSignal): Promise<V | undefined>;
}

interface ServedVersionOptions<V extends string> extends GroupResource {
  readonly client: Pick<KubeClient, "request">;
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly versions: readonly V[];
}

export function createServedVersion<V extends string>(options: ServedVersionOptions<V>): ServedVersion<V> {
  const { client, clock, group, versions, resource } = options;
  let known: { readonly version: V | undefined; readonly atMs: number } | undefined;

  async function isServed(version: V, signal: AbortSignal): Promise<boolean> {
    try {
      const doing = `looking for ${resource}.${group}`;
      const answer = await client.request({ method: "GET", path: `/apis/${group}/${version}`, signal, doing });
      const { resources = [] } = (answer ?? {}) as { readonly resources?: readonly { readonly name?: string }[] };
      return resources.some(({ name }) => name === resource);
    } catch (error) {
      if (isStatus(error, "NotFound")) return false;
      throw error;
    }
  }

  async function find(signal: AbortSignal): Promise<V | undefined> {
    for (const version of versions) if (await isServed(version, signal)) return version;
    return undefined;
  }

  return {
    async read(signal) {
      if (known === undefined || clock.monotonicMs() >= known.atMs + AGAIN_MS) {
        known = { version: await find(signal), atMs: clock.monotonicMs() };
      }
      return known.version;
    },
  };
}
