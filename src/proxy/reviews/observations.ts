// Gathers what became of the calls, for the metrics in the main thread. Invariants: no call waits for it; few
// messages, and what is not sent yet is small. Called by the layer `observe` and by listener.ts.
import type { Clock, Timer } from "../../base/clock.ts";
import type { ReviewResult } from "./review-call.ts";
import type { Observation } from "./thread-messages.ts";

export interface Observations {
  /** @param isFromPeer a peer has forwarded the call */
  answered(result: ReviewResult, isFromPeer: boolean, seconds: number): void;
  /** Sends what was not sent yet. */
  flush(): void;
}

/** The main thread counts so many in a fraction of a millisecond. */
const MAX_GATHERED = 64;
/** A scrape may lack the calls of this time, and so much is lost if the thread ends by itself. */
const SEND_MS = 250;

export function createObservations(send: (observations: readonly Observation[]) => void, clock: Clock): Observations {
  let gathered: Observation[] = [];
  let timer: Timer | undefined;
  const flush = () => {
    timer?.cancel();
    timer = undefined;
    if (gathered.length > 0) send(gathered);
    gathered = [];
  };
  return {
    answered(result, isFromPeer, seconds) {
      gathered.push({ result, isFromPeer, seconds });
      if (gathered.length >= MAX_GATHERED) flush();
      else timer ??= clock.after(SEND_MS, flush);
    },
    flush,
  };
}
