// Bounds the refused token reviews of one address, so that invented tokens do not keep others from being reviewed. Invariant: a review
// takes a place when it begins and gives it back unless the token is refused, so that no address has more than a burst of reviews under
// way. identify.ts uses it.
import { BoundedMap } from "../../base/bounded-map.ts";
import type { Clock } from "../../base/clock.ts";

export interface AddressLimit {
  /** Takes a place. False if there is none. */
  take(address: string): boolean;
  /** The token was good, or there was no answer about it. */
  giveBack(address: string): void;
}

// Some clusters show a thousand proxies under one address.
const BURST = 1_024;
const REFILL_MS = 100;
const MAX_ADDRESSES = 4_096;

export function createAddressLimit(clock: Clock): AddressLimit {
  const buckets = new BoundedMap<string, { left: number; atMs: number }>(MAX_ADDRESSES);
  return {
    take(address) {
      const nowMs = clock.monotonicMs();
      const { left, atMs } = buckets.get(address) ?? { left: BURST, atMs: nowMs };
      const places = Math.min(BURST, left + (nowMs - atMs) / REFILL_MS);
      buckets.set(address, { left: places < 1 ? places : places - 1, atMs: nowMs });
      return places >= 1;
    },
    giveBack(address) {
      const bucket = buckets.get(address);
      if (bucket !== undefined) bucket.left = Math.min(BURST, bucket.left + 1);
    },
  };
}
