// How many token reviews one address may cause that fail: whoever makes tokens up must not keep the reviews from others. A bucket an
// address; full buckets are forgotten. Invariant: a review takes a place when it begins and gives it back unless the token was refused,
// so that no more than a burst of one address runs or waits at a time.
import type { Clock } from "../../base/clock.ts";

export interface AddressLimit {
  /** True if there is a place, which is taken. */
  take(address: string): boolean;
  /** The token was good, or nobody could tell. */
  giveBack(address: string): void;
}

// Some clusters show a thousand proxies under one address. Four such addresses would fill what waits for reviews, once; then each has
// what is refilled.
const BURST = 1_024;
const REFILL_MS = 100;
const SWEEP_AT = 4_096;

export function createAddressLimit(clock: Clock): AddressLimit {
  const buckets = new Map<string, { left: number; atMs: number }>();
  let sweepAt = SWEEP_AT;
  const now = (address: string) => {
    const nowMs = clock.monotonicMs();
    const bucket = buckets.get(address) ?? { left: BURST, atMs: nowMs };
    bucket.left = Math.min(BURST, bucket.left + (nowMs - bucket.atMs) / REFILL_MS);
    bucket.atMs = nowMs;
    return bucket;
  };
  const sweep = () => {
    for (const address of buckets.keys()) if (now(address).left >= BURST) buckets.delete(address);
    sweepAt = Math.max(SWEEP_AT, 2 * buckets.size);
  };
  return {
    take(address) {
      if (buckets.size >= sweepAt) sweep();
      const bucket = now(address);
      buckets.set(address, bucket);
      if (bucket.left < 1) return false;
      bucket.left--;
      return true;
    },
    giveBack(address) {
      const bucket = buckets.get(address);
      if (bucket !== undefined) bucket.left = Math.min(BURST, bucket.left + 1);
    },
  };
}
