// Gathers what became of the calls, for the metrics in the main thread. Invariants: no call waits for it; few messages, and what is not sent yet is small.
// Called by the layer `observe` and by listener.ts.
import type { Clock, Timer } from "../../base/clock.ts";
import type { ReviewResult } from "./review-call.ts";
import type { Observation } from "./thread-messages.ts";

export interface Observations {
  /** @param isFromPeer a peer has forwarded the call */
  answered(result: ReviewResult, isFromPeer: boolean, seconds: number): void;
  /** Takes what was not sent yet. */
  take(): readonly Observation[];
}

/** The main thread counts so many in a fraction of a millisecond. */
const MAX_GATHERED = 64;
/** So that few are lost if the thread ends. */
const SEND_MS = 1_000;

export function createObservations(send: (observations: readonly Observation[]) => void, clock: Clock): Observations {
  let gathered: Observation[] = [];
  let timer: Timer | undefined;
  const take = () => {
    const taken = gathered;
    gathered = [];
    timer?.cancel();
    timer = undefined;
    return taken;
  };
  return {
    answered(result, isFromPeer, seconds) {
      gathered.push({ result, isFromPeer, seconds });
      if (gathered.length >= MAX_GATHERED) send(take());
      else timer ??= clock.after(SEND_MS, () => send(take()));
    },
    take,
  };
}
