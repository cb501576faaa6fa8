// Where the proxy looks for the leading replica next. Invariants: after every failure it asks the Service again, which knows the living
// replicas; it follows redirects, but neither in circles nor to a replica that has just failed. Used by mesh-client.
import type { Clock } from "../../base/clock.ts";

/** How a stream went. */
export interface Outcome {
  readonly error: Error | undefined;
  /** Who leads, as the replica says. */
  readonly redirect: string | undefined;
  /** The manager took the registration: the endpoint is good. */
  readonly served: boolean;
}

export interface LeaderFinder {
  readonly endpoint: string;
  /** Takes how the last stream went. True if the next endpoint may be tried at once. */
  next(outcome: Outcome): boolean;
}

/** How long a replica that did not serve is not gone to upon a redirect, in milliseconds: most of a lease. */
const AVOID_MS = 10_000;
/** Redirects in a row that are followed; replicas that send each other's proxies around do not know who leads. */
const MAX_HOPS = 2;

/** @param service host:port that leads to any replica */
export function createLeaderFinder(service: string, clock: Clock): LeaderFinder {
  /** Until when, by replica. */
  const avoided = new Map<string, number>();
  let endpoint = service;
  let hops = 0;

  const avoid = (replica: string) => {
    const nowMs = clock.monotonicMs();
    // Replicas come and go under new addresses: what nobody names any more must not add up.
    for (const [known, untilMs] of avoided) if (untilMs <= nowMs) avoided.delete(known);
    avoided.set(replica, nowMs + AVOID_MS);
  };
  const isAvoided = (replica: string) => clock.monotonicMs() < (avoided.get(replica) ?? 0);
  return {
    get endpoint() {
      return endpoint;
    },
    next({ redirect, served }) {
      const isFailure = !served && redirect === undefined;
      if (isFailure && endpoint !== service) avoid(endpoint);
      hops = redirect === undefined ? 0 : hops + 1;
      const isFollowed = redirect !== undefined && hops <= MAX_HOPS && !isAvoided(redirect);
      endpoint = isFollowed ? redirect : service;
      if (redirect !== undefined && !isFollowed) hops = 0;
      return isFollowed && hops === 1;
    },
  };
}
