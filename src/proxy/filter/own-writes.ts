// The writes of this pod that its clients may still wait for. A client that reads its own writes (controller-
// runtime's EnableReadYourWritesConsistency) waits until its watch has shown the version of its last write.
// Invariant: nothing waits longer than a second for a write that gets no answer.
import type { Clock } from "../../base/clock.ts";

export interface OwnWrites {
  /** A write is sent. Call the returned function once, when it is answered. */
  begin(): () => void;
  /** A client may wait for the event of a write. */
  isAwaited(): boolean;
  /**
   * Calls `run` once all writes in flight now are answered and the API server has had time to send their
   * events. Returns the cancellation.
   */
  afterEvents(run: () => void): () => void;
}

/** An API server sends the event of a write some milliseconds after the answer, and later under load. */
export const EVENT_MS = 250;
/** How long a write without an answer is waited for. */
export const ANSWER_MS = 1_000;
/** A client has seen its write by then, or waits for a version that only another event can bring. */
const AWAITED_MS = 10_000;

export function createOwnWrites(clock: Clock): OwnWrites {
  /** When a write was last sent or answered. */
  let newestMs = Number.NEGATIVE_INFINITY;
  /** How many writes were sent, which is also the number of the newest one. */
  let sent = 0;
  /** The numbers of the writes in flight, the oldest first. */
  const running = new Set<number>();
  /** Each waits for the writes up to a number. */
  const waiting = new Set<{ readonly lastWrite: number; readonly settle: () => void }>();

  const settleAnswered = () => {
    const [oldest = Number.POSITIVE_INFINITY] = running;
    for (const { lastWrite, settle } of waiting) if (oldest > lastWrite) settle();
  };

  return {
    begin() {
      const number = ++sent;
      running.add(number);
      newestMs = clock.monotonicMs();
      return () => {
        if (!running.delete(number)) return;
        newestMs = clock.monotonicMs();
        settleAnswered();
      };
    },
    isAwaited: () => running.size > 0 || clock.monotonicMs() - newestMs < AWAITED_MS,
    afterEvents(run) {
      const settle = () => {
        waiting.delete(wait);
        timer.cancel();
        timer = clock.after(EVENT_MS, run);
      };
      const wait = { lastWrite: sent, settle };
      let timer = clock.after(ANSWER_MS, settle);
      waiting.add(wait);
      settleAnswered();
      return () => {
        waiting.delete(wait);
        timer.cancel();
      };
    },
  };
}
