// The wait of one request for the owner of a namespace that nobody has heard of. The question to the API server whether it
// exists runs beside the wait for the manager. Invariant: whichever says something first is followed by a new decision, so that
// a namespace that has been created meanwhile is its owner's, whatever the answer to the question. No more wait at a time than
// there are places, and no longer than `holdMs`. Called by admission.
import type { Clock } from "../../../base/clock.ts";
import { MeshError } from "../../../base/errors.ts";
import type { Handler } from "../../call/call.ts";
import type { ResourceCall } from "../../call/resource-call.ts";
import type { CallSignal } from "../../http/call-signal.ts";
import { discardBody } from "../../http/discard-body.ts";
import type { Reply } from "../../http/handler.ts";
import type { Session } from "../../session/session.ts";
import { askMissing } from "./missing.ts";

export interface HoldDeps {
  /** Sends a question to the API server. */
  readonly ask: Handler;
  readonly session: Session;
  readonly clock: Clock;
  /** How long a request waits for an unknown namespace's owner. */
  readonly holdMs: number;
  readonly places: HoldPlaces;
}

/** Bounds how many wait at a time. */
export interface HoldPlaces {
  /** Undefined if all are taken; else what gives the place back, to be called once. */
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
  /** The API server's 404 if it has come; whoever takes it has to read or cancel its body. */
  takeMissing(): Reply | undefined;
  /** Resolves with the next snapshot, with the API server's 404, or when time is over; rejects when the client goes. */
  next(): Promise<void>;
  end(): void;
}

/**
 * Begins to wait, and asks the API server beside it. To be ended once the call has been decided upon.
 * @returns undefined if too many wait already
 */
export function beginHold(call: ResourceCall, namespace: string, deps: HoldDeps): Hold | undefined {
  const { session, clock, holdMs, ask } = deps;
  const leave = deps.places.take();
  if (leave === undefined) return undefined;
  const release = session.beginHold(namespace);
  const asking = new AbortController();
  const deadlineMs = clock.monotonicMs() + holdMs;
  let over = false; // nobody takes the API server's answer any more
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
      call.record.waitedMs = (call.record.waitedMs ?? 0) + clock.monotonicMs() - startedMs;
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
    const finish = (settle: () => void) => {
      unsubscribe();
      timer.cancel();
      signal.removeEventListener("abort", gone);
      settle();
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
