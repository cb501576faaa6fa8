// Namespaces this subset owned when they left the route table, with the time they left (pauses excluded). The client is still owed
// their last events. Invariant: a namespace that the table names again is forgotten. Called by the watch filter.
import type { Clock } from "../../base/clock.ts";
import type { ResourceView } from "../../route/snapshot.ts";

/** A namespace goes when it is empty, and the routes say so later: a watch that nothing stalls has its last events by then. */
const LAST_EVENTS_MS = 30_000;

export class DepartedNamespaces {
  readonly #clock: Clock;
  readonly #since = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Follows a change of the routes. `removed`: namespaces that the table names no more. */
  follow(removed: readonly string[], before: ResourceView, now: ResourceView): void {
    const nowMs = this.#clock.monotonicMs();
    for (const namespace of removed) if (before.ownershipOf(namespace) === "own") this.#since.set(namespace, nowMs);
    for (const namespace of this.#since.keys()) if (now.ownershipOf(namespace) !== "unknown") this.#since.delete(namespace);
  }

  has(namespace: string): boolean {
    return this.#since.has(namespace);
  }

  /** True if it was here. */
  forget(namespace: string): boolean {
    return this.#since.delete(namespace);
  }

  /** True if events may be missing that no later watch would show. A stalled watch has not taken events as they came. */
  mayOweEvents(isStalled: boolean): boolean {
    if (isStalled) return this.#since.size > 0;
    const nowMs = this.#clock.monotonicMs();
    return this.#since.values().some((sinceMs) => nowMs - sinceMs < LAST_EVENTS_MS);
  }

  /** The watch goes on after a pause: the last events have waited as well. */
  addPause(pauseMs: number): void {
    const nowMs = this.#clock.monotonicMs();
    for (const [namespace, sinceMs] of this.#since) this.#since.set(namespace, Math.min(nowMs, sinceMs + pauseMs));
  }
}
