// Patches missing labels, at most `perSecond` objects of all resources together. Invariant: an object that
// could not be patched, or whose patch the watch has not shown yet, waits, so that it delays no others.
import { type Clock, sleep } from "../../base/clock.ts";
import { errorMessage } from "../../base/errors.ts";
import { type Resource, resourceName } from "../../kube/client/resource.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import type { Labels } from "../../kube/label-selector.ts";
import { isStatus } from "../../kube/status.ts";
import type { KubeObject } from "../../kube/types.ts";

interface PatcherOptions {
  readonly client: Pick<KubeClient, "patch">;
  readonly perSecond: number;
  readonly clock: Clock;
}

export interface MissingLabels {
  readonly object: KubeObject;
  readonly labels: Labels;
}

interface Attempt {
  readonly version: string | undefined;
  readonly againMs: number;
  readonly failure?: string;
}

const SHOWN_MS = 5_000;
const AFTER_FAILURE_MS = 30_000;

export function createPatcher({ client, perSecond, clock }: PatcherOptions) {
  /** By resource, then by the uid of the object. */
  const attempts = new Map<string, Map<string, Attempt>>();
  let freeAtMs = 0;

  const attemptsOf = (resource: Resource) => attempts.get(resourceName(resource)) ?? new Map<string, Attempt>();
  const waitOf = (resource: Resource, { metadata }: KubeObject): number => {
    const last = attemptsOf(resource).get(metadata.uid ?? "");
    if (last === undefined || (last.failure === undefined && last.version !== metadata.resourceVersion)) return 0;
    return Math.max(0, last.againMs - clock.monotonicMs());
  };

  async function takeTurn(signal: AbortSignal) {
    const now = clock.monotonicMs();
    const at = Math.max(now, freeAtMs);
    freeAtMs = at + 1000 / perSecond;
    if (at > now) await sleep(clock, at - now, signal);
  }

  async function patchOne(resource: Resource, { object, labels }: MissingLabels, signal: AbortSignal): Promise<Attempt> {
    const { name = "", namespace, resourceVersion: version } = object.metadata;
    const body = { metadata: { labels } };
    try {
      await client.patch(resource, { namespace, name }, { type: "merge", body }, { signal });
    } catch (error) {
      signal.throwIfAborted();
      if (!isStatus(error, "NotFound")) {
        const failure = `patching ${namespace === undefined ? name : `${namespace}/${name}`}: ${errorMessage(error)}`;
        return { version, againMs: clock.monotonicMs() + AFTER_FAILURE_MS, failure };
      }
    }
    return { version, againMs: clock.monotonicMs() + SHOWN_MS };
  }

  return {
    /**
     * Patches some of these objects, for about a second. Returns the time until the next call, if one is due.
     * @throws the signal's reason if it fires
     */
    async patch(resource: Resource, all: readonly MissingLabels[], signal: AbortSignal): Promise<number | undefined> {
      const due = all.filter(({ object }) => waitOf(resource, object) === 0);
      const uids = new Set(all.map(({ object }) => object.metadata.uid ?? ""));
      const made = new Map([...attemptsOf(resource)].filter(([uid]) => uids.has(uid)));
      attempts.set(resourceName(resource), made);
      for (const each of due.slice(0, perSecond)) {
        await takeTurn(signal);
        made.set(each.object.metadata.uid ?? "", await patchOne(resource, each, signal));
      }
      const waits = all.map(({ object }) => waitOf(resource, object));
      return waits.length === 0 ? undefined : Math.max(1, Math.min(...waits));
    },
    failureOf(resource: Resource, all: readonly MissingLabels[]): string | undefined {
      const made = attemptsOf(resource);
      return all.map(({ object }) => made.get(object.metadata.uid ?? "")?.failure).find((failure) => failure !== undefined);
    },
    forget: (resource: Resource): void => void attempts.delete(resourceName(resource)),
  };
}
