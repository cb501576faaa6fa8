// How much each client may cause: a bucket for each address or pod, for TLS handshakes (each costs a
// millisecond of a core), bodies, probes, registrations and log lines. Invariant: others do not notice a
// client that causes too much.
import { BoundedMap } from "./bounded-map.ts";
import type { Clock } from "./clock.ts";

export interface ClientPace {
  /** Charges the amount if the bucket holds all of it now. Otherwise charges nothing and returns false. */
  allow(client: string, amount: number): boolean;
  /** Charges the amount, and returns how long the client has to wait until it is paid, in milliseconds. */
  charge(client: string, amount: number): number;
  /** Takes back what was charged for something that did not happen. */
  giveBack(client: string, amount: number): void;
}

interface ClientPaceOptions {
  readonly perSecond: number;
  /** What a client may cause in one moment after a pause. */
  readonly burst: number;
  readonly clock: Pick<Clock, "monotonicMs">;
}

/** A client that is forgotten has its burst again. A stranger rarely has so many addresses. */
const MAX_CLIENTS = 4_096;

export function createClientPace({ perSecond, burst, clock }: ClientPaceOptions): ClientPace {
  const buckets = new BoundedMap<string, { readonly left: number; readonly atMs: number }>(MAX_CLIENTS);
  const leftOf = (client: string): number => {
    const nowMs = clock.monotonicMs();
    const { left, atMs } = buckets.get(client) ?? { left: burst, atMs: nowMs };
    return Math.min(burst, left + ((nowMs - atMs) * perSecond) / 1_000);
  };
  const take = (client: string, amount: number): number => {
    const left = Math.min(burst, leftOf(client) - amount);
    buckets.set(client, { left, atMs: clock.monotonicMs() });
    return left;
  };
  return {
    allow(client, amount) {
      if (leftOf(client) < amount) return false;
      take(client, amount);
      return true;
    },
    charge: (client, amount) => Math.max(0, (-take(client, amount) * 1_000) / perSecond),
    giveBack: (client, amount) => void take(client, -amount),
  };
}
