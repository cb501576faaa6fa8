// One call of a reconciler, and its outcome. Invariant: the result is an Outcome, whether the reconciler
// returns, throws, rejects or hangs; and a call that hangs does not block a worker. Called by
// running-controller.ts.
import type { Clock } from "../base/clock.ts";
import { MeshError } from "../base/errors.ts";
import type { Reconciler, Request } from "./reconciler.ts";
import { TerminalError } from "./reconciler.ts";

/** The outcome of a reconcile. `result` is the label in the metrics. */
export type Outcome =
  | { readonly result: "success" }
  | { readonly result: "requeue_after"; readonly afterMs: number }
  | { readonly result: "error"; readonly error: unknown; readonly terminal: boolean }
  /** The reconcile ended because of a stop. This is no failure, and there is no retry. */
  | { readonly result: "canceled" };

export interface AttemptOptions {
  readonly reconciler: Reconciler;
  readonly request: Request;
  /** Fires when the reconcile must end immediately. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** See ControllerOptions. */
  readonly timeoutMs: number | undefined;
  /** The reconcile has timed out, and its signal has fired. */
  onTimeout(): void;
  /** The reconciler still runs, a second after the timeout. */
  onStuck(): void;
}

// A reconciler that follows its signal ends within this time.
const STUCK_AFTER_MS = 1_000;

/** Reconciles once. Never rejects. */
export async function attemptReconcile(options: AttemptOptions): Promise<Outcome> {
  const { reconciler, request, signal } = options;
  if (signal.aborted) return { result: "canceled" }; // taken from the queue during a stop
  const limit = options.timeoutMs === undefined ? undefined : startLimit(options, options.timeoutMs);
  try {
    const { requeueAfterMs } = await reconciler.reconcile(request, limit?.signal ?? signal);
    return requeueAfterMs === undefined ? { result: "success" } : { result: "requeue_after", afterMs: requeueAfterMs };
  } catch (error) {
    if (signal.aborted) return { result: "canceled" };
    return { result: "error", error, terminal: error instanceof TerminalError };
  } finally {
    limit?.end();
  }
}

/** A signal that fires with the given one, or at the timeout. */
function startLimit({ clock, signal, onTimeout, onStuck }: AttemptOptions, timeoutMs: number) {
  const expired = new AbortController();
  let timer = clock.after(timeoutMs, () => {
    expired.abort(new MeshError("RECONCILE_TIMEOUT", `reconciling: not done after ${timeoutMs} ms`));
    onTimeout();
    timer = clock.after(STUCK_AFTER_MS, onStuck);
  });
  return { signal: AbortSignal.any([signal, expired.signal]), end: () => timer.cancel() };
}
