// Counts every refused caller and logs few of them. Invariant: a flood writes one line a minute for each
// reason and caller, and the number of callers is bounded.
import { Counter } from "../../base/metrics.ts";
import type { ProcessContext } from "../../base/process-context.ts";

const QUIET_MS = 60_000;
const MAX_CALLERS = 256;
const REASONS = [
  "no-token",
  "bad-token",
  "not-bound",
  "other-pod",
  "no-proxy",
  "no-app",
  "newer-epoch",
  "bad-request",
  "handshake",
] as const;

/** A label value of the metric. */
export type Rejection = (typeof REASONS)[number];

export type Rejections = ReturnType<typeof createRejections>;

export function createRejections({ registry, clock, log }: Pick<ProcessContext, "registry" | "clock" | "log">) {
  const counter = new Counter({
    name: "ctrlmesh_manager_rejected_identities_total",
    help: "Connections and calls that were refused because of their caller, by reason.",
    labelNames: ["reason"],
    registers: [registry],
  });
  for (const reason of REASONS) counter.inc({ reason }, 0);
  /** By reason and caller: the time of the last line, and the refusals since then. */
  const quiet = new Map<string, { sinceMs: number; count: number }>();
  let unlogged = 0;
  return {
    /** @param who the address, or the pod if it is known */
    reject(reason: Rejection, who: string, message: string): void {
      counter.inc({ reason });
      const nowMs = clock.monotonicMs();
      const key = `${reason} ${who}`;
      const last = quiet.get(key);
      if (last !== undefined && nowMs - last.sinceMs < QUIET_MS) {
        last.count++;
        return;
      }
      for (const [old, { sinceMs, count }] of quiet) {
        if (old === key || nowMs - sinceMs < QUIET_MS) continue;
        quiet.delete(old);
        unlogged += count;
      }
      if (last === undefined && quiet.size >= MAX_CALLERS) {
        unlogged++;
        return;
      }
      quiet.set(key, { sinceMs: nowMs, count: 0 });
      log.warn({ reason, who, why: message, repeated: last?.count ?? 0, unlogged }, "turned away");
      unlogged = 0;
    },
  };
}
