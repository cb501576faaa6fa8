// How often one pod may register: a proxy that comes back over and over must not keep the manager from the others. A bucket a pod;
// full buckets are forgotten, so there are no more of them than pods that were here in the last seconds.
import type { Clock } from "../../base/clock.ts";

export interface RegistrationLimit {
  /** True if the pod may be served now. */
  allow(pod: string): boolean;
}

// A proxy's own backoff is far below: its tries come 0.1 to 3 s apart, and only while it is not served.
const BURST = 10;
const REFILL_MS = 500;
const SWEEP_AT = 4_096;

export function createRegistrationLimit(clock: Clock): RegistrationLimit {
  const buckets = new Map<string, { left: number; atMs: number }>();
  const leftAt = ({ left, atMs }: { left: number; atMs: number }, nowMs: number) =>
    Math.min(BURST, left + (nowMs - atMs) / REFILL_MS);
  return {
    allow(pod) {
      const nowMs = clock.monotonicMs();
      if (buckets.size >= SWEEP_AT) {
        for (const [key, bucket] of buckets) if (leftAt(bucket, nowMs) >= BURST) buckets.delete(key);
      }
      const left = leftAt(buckets.get(pod) ?? { left: BURST, atMs: nowMs }, nowMs);
      buckets.set(pod, { left: left < 1 ? left : left - 1, atMs: nowMs });
      return left >= 1;
    },
  };
}
