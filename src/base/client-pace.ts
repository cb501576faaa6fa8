// Rate limits: one bucket for each client, which is an address or a pod. They bound TLS handshakes (a
// millisecond of a core each), bodies, probes, registrations and log lines. Invariant: a client over its
// limit does not slow other clients.
import { BoundedMap } from "./bounded-map.ts";
import type { Clock } from "./clock.ts";

export type ClientPace = ReturnType<typeof createClientPace>;

interface ClientPaceOptions {
  readonly perSecond: number;
  /** The amount that a client may use at once after a pause. */
  readonly burst: number;
  readonly clock: Pick<Clock, "monotonicMs">;
}

/** A forgotten client has its whole burst again. An attacker rarely has so many addresses. */
const MAX_CLIENTS = 4_096;

export function createClientPace({ perSecond, burst, clock }: ClientPaceOptions) {
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
    /** Charges the amount if the bucket has all of it now. Otherwise charges nothing and returns false. */
    allow(client: string, amount: number): boolean {
      if (leftOf(client) < amount) return false;
      take(client, amount);
      return true;
    },
    /** Charges the amount. Returns the milliseconds that the client has to wait until its debt is paid. */
    charge: (client: string, amount: number) => Math.max(0, (-take(client, amount) * 1_000) / perSecond),
    /** Takes back what was charged for something that did not happen. */
    giveBack: (client: string, amount: number) => void take(client, -amount),
  };
}
