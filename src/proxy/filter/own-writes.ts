// The writes of this pod that its clients may still wait for. A client that reads its own writes (controller-
// runtime's EnableReadYourWritesConsistency) waits until its watch has shown the version of its last write.
// Invariant: nothing waits longer than a second for a write that gets no answer.
import type { Clock } from "../../base/clock.ts";
import type { GroupResource } from "../../kube/types.ts";

export interface OwnWrites {
  /** A write to an object of the resource is sent. Call the returned function once, when it is answered. */
  begin(target: GroupResource): () => void;
  /** A client may wait for the event of a write to the resource; without a target, to any resource. */
  isAwaited(target?: GroupResource): boolean;
  /**
   * Calls `run` once all writes in flight now are answered and the API server has had time to send their
   * events. Returns the cancellation.
   */
  afterEvents(run: () => void): () => void;
}

/** An API server sends an event some milliseconds after its answer, and later under load. */
export const EVENT_MS = 250;
/** How long a write without an answer is waited for. */
export const ANSWER_MS = 1_000;
/** A client has seen its write by then, or waits for a version that only another event can bring. */
const AWAITED_MS = 10_000;
/** Clients choose resources freely. */
const MAX_RESOURCES = 1_000;

export function createOwnWrites(clock: Clock): OwnWrites {
  /** When the newest write to each resource was sent or answered. */
  const newest = new Map<string, number>();
  let newestOfAll = Number.NEGATIVE_INFINITY;
  let sent = 0;
  /** The numbers of the writes in flight, the oldest first. */
  const running = new Set<number>();
  const waiting = new Set<{ readonly until: number; readonly go: () => void }>();

  const note = (key: string) => {
    newestOfAll = clock.monotonicMs();
    newest.set(key, newestOfAll);
    const [first] = newest.keys();
    if (newest.size > MAX_RESOURCES && first !== undefined) newest.delete(first);
  };
  const goOn = () => {
    const [oldest = Number.POSITIVE_INFINITY] = running;
    for (const each of waiting) if (oldest > each.until) each.go();
  };

  return {
    begin({ group, resource }) {
      const key = `${group}/${resource}`;
      const number = ++sent;
      running.add(number);
      note(key);
      return () => {
        if (!running.delete(number)) return;
        note(key);
        if (waiting.size > 0) goOn();
      };
    },
    isAwaited(target) {
      const at = target === undefined ? newestOfAll : newest.get(`${target.group}/${target.resource}`);
      return running.size > 0 || (at !== undefined && clock.monotonicMs() - at < AWAITED_MS);
    },
    afterEvents(run) {
      const settle = () => {
        waiting.delete(wait);
        timer.cancel();
        timer = clock.after(EVENT_MS, run);
      };
      const wait = { until: sent, go: settle };
      let timer = clock.after(ANSWER_MS, settle);
      waiting.add(wait);
      goOn();
      return () => {
        waiting.delete(wait);
        timer.cancel();
      };
    },
  };
}
