// The wait of one call for the owner of an unknown namespace. Beside it, the API server is asked whether the namespace exists.
// Invariant: a new decision follows the first of both answers, and a wait has its bounds in time and number. Called by admission.ts.
import type { Clock } from "../../../base/clock.ts";
import { MeshError } from "../../../base/errors.ts";
import { addWait, type Handler } from "../../call/call.ts";
import type { ResourceCall } from "../../call/resource-call.ts";
import type { CallSignal } from "../../http/call-signal.ts";
import { discardBody } from "../../http/discard-body.ts";
import type { Reply } from "../../http/handler.ts";
import type { Session } from "../../session/session.ts";
import { askMissing } from "./missing.ts";

export interface HoldDeps {
  /** Asks the API server. */
  readonly ask: Handler;
  readonly session: Session;
  readonly clock: Clock;
  /** How long a call waits. */
  readonly holdMs: number;
  readonly places: HoldPlaces;
}

/** Bounds how many calls wait at a time. */
export interface HoldPlaces {
  /** Takes a place. Returns the function that gives it back, to be called once; undefined if there is none. */
  take(): (() => void) | undefined;
}

export function createHoldPlaces(max: number): HoldPlaces {
  let taken = 0;
  return {
    take() {
      if (taken >= max) return undefined;
      taken++;
      return () => taken--;
    },
  };
}

export interface Hold {
  readonly deadlineMs: number;
  /** The API server's 404, if it has come. The caller has to read or cancel its body. */
  takeMissing(): Reply | undefined;
  /** Resolves with the next snapshot, the API server's 404, or the end of the wait. Rejects when the client goes. */
  next(): Promise<void>;
  end(): void;
}

/**
 * Begins to wait and asks the API server. To be ended after the decision.
 * @returns undefined if too many calls wait already
 */
export function beginHold(call: ResourceCall, namespace: string, deps: HoldDeps): Hold | undefined {
  const { session, clock, holdMs, ask } = deps;
  const leave = deps.places.take();
  if (leave === undefined) return undefined;
  const release = session.beginHold(namespace);
  const asking = new AbortController();
  const deadlineMs = clock.monotonicMs() + holdMs;
  let over = false; // nobody takes the API server's answer
  let missing: Reply | undefined;
  let wake: () => void = () => undefined;
  void askMissing(call, namespace, asking.signal, ask).then((reply) => {
    if (over) discardBody(reply?.body ?? null);
    else if (reply !== undefined) {
      missing = reply;
      wake();
    }
  });
  return {
    deadlineMs,
    takeMissing() {
      const taken = missing;
      missing = undefined;
      over ||= taken !== undefined;
      return taken;
    },
    async next() {
      const startedMs = clock.monotonicMs();
      const woken = (listener: () => void) => {
        wake = listener;
      };
      await nextChange(session, clock, deadlineMs - startedMs, call.signal, woken);
      addWait(call.record, clock.monotonicMs() - startedMs);
    },
    end() {
      release();
      leave();
      if (over) return; // the answer is the caller's now
      over = true;
      discardBody(missing?.body ?? null);
      asking.abort(new MeshError("ABORTED", "asking whether a namespace exists: not needed any more"));
    },
  };
}

function nextChange(
  session: Session,
  clock: Clock,
  timeoutMs: number,
  signal: CallSignal,
  onWake: (listener: () => void) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const finish = (finished: () => void) => {
      unsubscribe();
      timer.cancel();
      signal.removeEventListener("abort", gone);
      finished();
    };
    const gone = () =>
      finish(() => reject(new MeshError("ABORTED", "waiting for a namespace's owner: aborted", { cause: signal.reason })));
    const done = () => finish(resolve);
    const unsubscribe = session.onChange(done);
    const timer = clock.after(timeoutMs, done);
    onWake(done);
    if (signal.aborted) gone();
    else signal.addEventListener("abort", gone, { once: true });
  });
}
