// The calls that run now, with the means to end them. Invariant: a call's signal fires once its client is gone or the
// drain is over, and a call is forgotten only when its socket has been dealt with. Used by the traffic server.
import type { Clock } from "../../base/clock.ts";
import { MeshError } from "../../base/errors.ts";
import type { RawCall } from "../pipeline/handler.ts";
import { isLongRunning } from "../upstream/pools.ts";

/** A call that runs. */
export interface Running {
  readonly call: RawCall;
  /** Over. `gone`: the client went before it had its answer. */
  end(gone: boolean): void;
}

export interface InFlight {
  begin(call: Omit<RawCall, "signal" | "record">): Running;
  readonly draining: boolean;
  /** Resolves when no call with an end of its own runs any more, or after `drainMs`. Watches are not waited for. */
  drain(drainMs: number): Promise<void>;
  /** Fires the signals of all that is left. */
  abortAll(): void;
}

/** Makes an empty set. */
export function createInFlight(clock: Clock): InFlight {
  const running = new Map<RawCall, AbortController>();
  let changed: (() => void) | undefined;
  return {
    begin(parts) {
      const abort = new AbortController();
      const call: RawCall = { ...parts, signal: abort.signal, record: { decision: "forwarded", lock: false } };
      running.set(call, abort);
      return {
        call,
        end(gone) {
          running.delete(call);
          if (gone) abort.abort(new MeshError("ABORTED", "serving a request: the client is gone"));
          changed?.();
        },
      };
    },
    get draining() {
      return changed !== undefined;
    },
    drain(drainMs) {
      return new Promise((resolve) => {
        const timer = clock.after(drainMs, resolve);
        changed = () => {
          if ([...running.keys()].some(hasEnd)) return;
          timer.cancel();
          resolve();
        };
        changed();
      });
    },
    abortAll() {
      const shutdown = new MeshError("ABORTED", "draining: the proxy is shutting down");
      for (const abort of [...running.values()]) abort.abort(shutdown);
    },
  };
}

function hasEnd({ record }: RawCall): boolean {
  return record.info === undefined || !isLongRunning(record.info);
}
