// How long a client may take. Invariant: what arrived while the event loop was blocked is read before the
// client is called late. Used for connections that have proved nothing.
import type { Clock, Timer } from "./clock.ts";

export interface Deadline {
  /** Starts the deadline, or starts it again. */
  set(ms: number): void;
  clear(): void;
}

/** Node runs due timers before it reads sockets. After a stall this is time for one turn of the loop. */
const TURN_MS = 50;

/** @param onOver runs when the time is over and nobody has cleared it */
export function createDeadline(clock: Clock, onOver: () => void): Deadline {
  let timer: Timer | undefined;
  return {
    set(ms) {
      timer?.cancel();
      timer = clock.after(ms, () => {
        timer = clock.after(TURN_MS, onOver);
      });
    },
    clear() {
      timer?.cancel();
      timer = undefined;
    },
  };
}
