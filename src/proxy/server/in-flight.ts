// The calls and clients that the server waits for when it stops. Invariant: the signal of a call fires once,
// when its client is gone, its time is up or the drain is over, and at the latest when the call is over. So
// nothing outlives the call (an unread body holds a connection).
import type { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { type Clock, sleep, type Timer } from "../../base/clock.ts";
import { MeshError } from "../../base/errors.ts";
import { CallAbort } from "../http/call-signal.ts";
import type { CallNotes, HttpCall } from "../http/handler.ts";

export interface Running<Call> {
  readonly call: Call;
  /** Fires the call's signal if it still runs after this time. */
  endAfter(ms: number): void;
  /** Called when the call is over. @param gone the client went before it had its answer */
  end(gone: boolean): void;
}

export type InFlight<Notes extends CallNotes> = ReturnType<typeof createInFlight<Notes>>;

/** The same for every call: an error for each request would cost a stack trace. */
const OVER = new MeshError("ABORTED", "serving a request: it is over");

/** How long the last call may take to send its end. */
const LAST_END_MS = 250;

export function createInFlight<Notes extends CallNotes>(clock: Clock) {
  const running = new Map<HttpCall<Notes>, CallAbort>();
  let draining = false;
  let onCallEnd: (() => void) | undefined;

  const untilNone = (which: (call: HttpCall) => boolean, withinMs: number): Promise<void> =>
    new Promise((resolve) => {
      const timer = clock.after(withinMs, resolve);
      onCallEnd = () => {
        if ([...running.keys()].some(which)) return;
        timer.cancel();
        resolve();
      };
      onCallEnd();
    });

  return {
    begin(parts: Omit<HttpCall<Notes>, "signal">): Running<HttpCall<Notes>> {
      const abort = new CallAbort();
      const call: HttpCall<Notes> = { ...parts, signal: abort };
      running.set(call, abort);
      let timer: Timer | undefined;
      return {
        call,
        endAfter(ms) {
          if (running.has(call))
            timer = clock.after(ms, () => abort.abort(new MeshError("ABORTED", "serving a request: its time is up")));
        },
        end(gone) {
          running.delete(call);
          timer?.cancel();
          abort.abort(gone ? new MeshError("ABORTED", "serving a request: the client is gone") : OVER);
          onCallEnd?.();
        },
      };
    },
    get draining(): boolean {
      return draining;
    },
    beginDrain(): void {
      draining = true;
    },
    /** Resolves when only watches and other endless calls run, or after this time. */
    untilOnlyEndless: (withinMs: number): Promise<void> => untilNone(hasEnd, withinMs),
    /** Ends the endless calls, spread over this time so that their clients do not all come back together. */
    async endLongRunning(spreadMs: number): Promise<void> {
      const calls = [...running].filter(([call]) => !hasEnd(call));
      const timers = calls.map(([, abort], index) =>
        clock.after((spreadMs * (index + 1)) / calls.length, () => abort.abort(shuttingDown())),
      );
      await untilNone((call) => !hasEnd(call), spreadMs + LAST_END_MS);
      for (const timer of timers) timer.cancel();
    },
    /** Ends all calls that are left. */
    abortAll(): void {
      for (const abort of [...running.values()]) abort.abort(shuttingDown());
    },
  };
}

function shuttingDown(): MeshError {
  return new MeshError("ABORTED", "draining: the proxy is shutting down");
}

function hasEnd({ record }: HttpCall): boolean {
  return record.isLongRunning !== true;
}

/** Counts the connections of a TLS server from now on. */
export function createClientCount(server: EventEmitter, clock: Clock) {
  let openCount = 0;
  let lastMs = Number.NEGATIVE_INFINITY;
  server.on("secureConnection", (socket: Socket) => {
    openCount++;
    socket.once("close", () => {
      openCount--;
      lastMs = clock.monotonicMs();
    });
  });
  return {
    /** Resolves once no client has had a connection for `quietMs`, and at the latest after `withinMs`. */
    async untilNone(withinMs: number, quietMs: number): Promise<void> {
      const endMs = clock.monotonicMs() + withinMs;
      for (let nowMs = clock.monotonicMs(); nowMs < endMs; nowMs = clock.monotonicMs()) {
        const quietAtMs = openCount === 0 ? lastMs + quietMs : nowMs + quietMs;
        if (quietAtMs <= nowMs) return;
        await sleep(clock, Math.min(quietAtMs, endMs) - nowMs);
      }
    },
  };
}
