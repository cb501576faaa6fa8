// The places to which the pod writes, or has just written.
import type { Clock } from "../../base/clock.ts";
import { JUST_WRITTEN_MS } from "../../mesh/link/own-writes.ts";
import type { Session } from "./session.ts";

export type LastWrites = ReturnType<typeof createLastWrites>;

/** Counts each write of the pod's own, and none that the guard lets pass to another subset's object. */
export function countingLast(lastWrites: Pick<LastWrites, "begin">, beginWrite: Session["beginWrite"]): Session["beginWrite"] {
  return (place, target, reach) => {
    const end = beginWrite(place, target, reach);
    if (reach === "foreign") return end;
    const noteEnd = lastWrites.begin(place);
    return () => {
      noteEnd();
      end();
    };
  };
}

export function createLastWrites(clock: Pick<Clock, "monotonicMs">) {
  const inFlight = new Map<symbol, string>();
  /** When the last write to each place ended, the oldest first. */
  const ended = new Map<string, number>();
  const forgetOld = () => {
    const sinceMs = clock.monotonicMs() - JUST_WRITTEN_MS;
    for (const [place, ms] of ended) {
      if (ms >= sinceMs) break;
      ended.delete(place);
    }
  };
  return {
    /** Counts a write until the returned function is called, and for JUST_WRITTEN_MS more. Calling it again does nothing. */
    begin(place: string): () => void {
      const write = Symbol(place);
      inFlight.set(write, place);
      return () => {
        if (!inFlight.delete(write)) return;
        forgetOld();
        ended.delete(place);
        ended.set(place, clock.monotonicMs());
      };
    },
    get places(): ReadonlySet<string> {
      forgetOld();
      return new Set([...inFlight.values(), ...ended.keys()]);
    },
  };
}
