// Nonces of what is sent. All proxies that are sent the same at one time get the same number, so that it is the same bytes for all.
// Invariant: on one stream each is higher than those before, so that an ACK is of one sending.
import type { Snapshot } from "../../route/snapshot.ts";

export interface Nonces {
  /** @param last the highest that this proxy was sent; 0 if none */
  next(snapshot: Snapshot, last: number): number;
}

// More than the different tables that are told at one time.
const MAX_KNOWN = 256;

export function createNonces(): Nonces {
  const known = new Map<string, number>();
  let newest = 0;
  return {
    next({ digest, version }, last) {
      const key = `${digest} ${version}`;
      const same = known.get(key);
      if (same !== undefined && same > last) return same;
      known.delete(key);
      known.set(key, ++newest);
      const [oldest] = known.keys();
      if (known.size > MAX_KNOWN && oldest !== undefined) known.delete(oldest);
      return newest;
    },
  };
}
