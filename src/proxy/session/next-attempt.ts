// Where and when the proxy tries to reach a manager next. Invariants: after every failure it asks the Service
// again, which knows the living replicas. Redirects lead neither in circles nor to a replica that has just
// failed. While nobody leads, the delay stays below 2 s, so that a new leader soon has all its proxies.
import { type BackoffOptions, backoffMs, type Clock, type Random } from "../../base/clock.ts";
import { isMeshError } from "../../base/errors.ts";
import { isRefusal, isUnbelieved } from "../identity/manager-channel.ts";

/** How a stream went. */
export interface Outcome {
  readonly error: Error | undefined;
  /** The leader that the replica has named. */
  readonly redirect: string | undefined;
  /** The manager took the registration: the endpoint is good. */
  readonly served: boolean;
  /** The stream brought updates, or lasted a while. */
  readonly isOfUse: boolean;
}

/** How long a replica that did not serve is avoided, in milliseconds: most of a lease. */
const AVOID_MS = 10_000;
/** Redirects in a row. After more of them, the replicas do not know who leads. */
const MAX_HOPS = 2;

/** @param service host:port that leads to any replica */
export function createLeaderFinder(service: string, clock: Clock) {
  /** Until when each replica is avoided. */
  const avoided = new Map<string, number>();
  let endpoint = service;
  let hops = 0;

  const avoid = (replica: string) => {
    const nowMs = clock.monotonicMs();
    // Replicas come and go under new addresses, which must not add up.
    for (const [known, untilMs] of avoided) if (untilMs <= nowMs) avoided.delete(known);
    avoided.set(replica, nowMs + AVOID_MS);
  };
  const isAvoided = (replica: string) => clock.monotonicMs() < (avoided.get(replica) ?? 0);
  return {
    get endpoint(): string {
      return endpoint;
    },
    /** Chooses the next endpoint by how the last stream went. True if it may be tried immediately. */
    next({ redirect, served }: Outcome): boolean {
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

/** Failures of each kind in a row. */
export interface Retries {
  /** No replica served. */
  readonly unserved: number;
  /** A replica served, and the stream failed immediately. */
  readonly failed: number;
  /** A replica refused this pod. */
  readonly refused: number;
}

export const NO_RETRIES: Retries = { unserved: 0, failed: 0, refused: 0 };

/** A thousand waiting proxies try 700 times a second, and all find a new leader within 2 s. */
export const BACKOFF: BackoffOptions = { baseMs: 200, maxMs: 2_000 };

/** Multiplies the longest delay if every stream of a leader fails: it is alive, but faulty. */
const FAILED_STREAM_FACTOR = 10;
/** For a manager that does not believe who this pod is. Only a rotated token changes that. */
const UNBELIEVED_BACKOFF: BackoffOptions = { baseMs: 1_000, maxMs: 60_000 };
/** For a manager that knows no such pod or no app for it: it may learn of them soon. */
const TURNED_AWAY_BACKOFF: BackoffOptions = { baseMs: 1_000, maxMs: 5_000 };

/**
 * Pure except for `random`.
 * @param isFollowed the next attempt goes to the leader that a replica has just named
 */
export function nextRetry(
  before: Retries,
  outcome: Outcome,
  isFollowed: boolean,
  { backoff, random }: { readonly backoff: BackoffOptions; readonly random: Random },
): { readonly retries: Retries; readonly delayMs: number } {
  const { served, isOfUse, error } = outcome;
  const retries = {
    unserved: served ? 0 : before.unserved,
    failed: isOfUse && (served || !isFollowed) ? 0 : before.failed,
    refused: isRefusal(error) ? before.refused : 0,
  };
  if (!served && isFollowed) return { retries, delayMs: 0 };
  // All proxies of a leader notice its end in one moment: they come back over a second.
  const spread = (random() * backoff.maxMs) / 2;
  if (isOfUse) return { retries, delayMs: spread };
  if (served) {
    const failed = retries.failed + 1;
    const longer = { ...backoff, maxMs: backoff.maxMs * FAILED_STREAM_FACTOR };
    return { retries: { ...retries, failed }, delayMs: failed === 1 ? spread : backoffMs(failed, longer, random) };
  }
  if (isRefusal(error)) {
    const slower = isUnbelieved(error) ? UNBELIEVED_BACKOFF : TURNED_AWAY_BACKOFF;
    return { retries: { ...retries, refused: retries.refused + 1 }, delayMs: backoffMs(retries.refused, slower, random) };
  }
  // The proxy has waited for the silent replica already, and the service may lead to another one now.
  if (isMeshError(error, "MANAGER_SILENT")) return { retries, delayMs: random() * backoff.baseMs };
  return { retries: { ...retries, unserved: retries.unserved + 1 }, delayMs: backoffMs(retries.unserved, backoff, random) };
}
