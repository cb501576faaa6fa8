// The memory for answers of other clusters, in one budget for all of them: parts of lists and watches that cannot be passed on yet.
// What is cut is collected soon: V8 would wait until 32 hostile clusters cost ten times the budget. Invariants: a cluster below an equal
// share loses nothing, whatever the others send; home has no part in the budget.
import type { Clock } from "../../base/clock.ts";
import { collectGarbage } from "../../base/collect-garbage.ts";
import { createFairMemory, type MemoryShare } from "../../base/fair-memory.ts";
import type { Logger } from "../../base/log.ts";
import { StatusError } from "../../kube/status.ts";

/** 2 MiB for each of the 32 clusters of a namespace: an object of etcd's largest size, in a buffer that has doubled. */
const MAX_BYTES = 64 * 1024 * 1024;
/** How long a cluster that has exceeded its share is not asked again. */
const REFUSED_MS = 5_000;

export interface ClusterMemory {
  readonly share: MemoryShare;
  /** Why the cluster is not asked for objects now; undefined: it is asked. */
  refusal(): StatusError | undefined;
}

interface AnswerMemoryOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly maxBytes?: number;
  /** Frees the memory of what was cut. */
  readonly collect?: () => void;
}

export function createAnswerMemory({ clock, log, maxBytes = MAX_BYTES, collect = collectGarbage }: AnswerMemoryOptions) {
  const memory = createFairMemory(maxBytes);
  let uncollectedBytes = 0;
  const noteCut = (bytes: number) => {
    uncollectedBytes += bytes;
    if (uncollectedBytes < maxBytes / 4) return;
    uncollectedBytes = 0;
    clock.after(0, collect); // the caller still holds the body
  };
  const cutMs = new Map<string, number>();
  return {
    of(cluster: string): ClusterMemory {
      const share = memory.of(cluster);
      const refusal = () => {
        const leftMs = (cutMs.get(cluster) ?? Number.NEGATIVE_INFINITY) + REFUSED_MS - clock.monotonicMs();
        return leftMs > 0 ? overShare(cluster, maxBytes, leftMs) : undefined;
      };
      return {
        refusal,
        share: {
          hold: (cut) =>
            share.hold((bytes) => {
              if (refusal() === undefined)
                log.warn({ cluster, maxBytes }, "an answer of another cluster was cut: it took too much memory");
              cutMs.set(cluster, clock.monotonicMs());
              noteCut(bytes);
              cut(bytes);
            }),
        },
      };
    },
    /** The cluster is not served any more. */
    forget: (cluster: string) => void cutMs.delete(cluster),
  };
}

function overShare(cluster: string, maxBytes: number, leftMs: number): StatusError {
  const share = `its share of the ${maxBytes / 1024 / 1024} MiB for answers of other clusters`;
  const message = `ctrlmesh: cluster ${JSON.stringify(cluster)} is not asked for objects: its last answers took more than ${share}`;
  return new StatusError("ServiceUnavailable", message, { retryAfterSeconds: Math.ceil(leftMs / 1_000) });
}
