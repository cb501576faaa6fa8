// The work of one term as leader. Invariant: it has ended only when the caller's function has returned and
// the signal has fired, so that a function that only starts something keeps the leadership. Called by
// leader-election.ts.
import { onAbort, untilAborted } from "../base/abort.ts";
import { isMeshError, MeshError } from "../base/errors.ts";
import type { Logger } from "../base/log.ts";

export interface LeadingWork {
  /** Fires when the work has ended. */
  readonly ended: AbortSignal;
  /** False if a part of the work may still run. Never rejects. */
  readonly isDrained: Promise<boolean>;
  /** Ends the work immediately. */
  abort(reason: MeshError): void;
}

/** @param shutdown ends the work in order */
export function startLeading(
  work: (signal: AbortSignal) => Promise<void> | void,
  shutdown: AbortSignal,
  log: Logger,
): LeadingWork {
  const leading = new AbortController();
  const ended = new AbortController();
  const unlink = onAbort(shutdown, () => leading.abort(new MeshError("SHUTDOWN", "leading: shutting down")));

  const run = async (): Promise<boolean> => {
    try {
      await work(leading.signal);
    } catch (error) {
      log.error({ err: error }, "leading failed");
      return !isMeshError(error, "DRAIN_TIMEOUT"); // a leader without work must not prevent other processes from leading
    }
    await untilAborted(leading.signal);
    return true;
  };
  const isDrained = run().finally(() => {
    unlink();
    ended.abort();
  });
  return { ended: ended.signal, isDrained, abort: (reason) => leading.abort(reason) };
}
