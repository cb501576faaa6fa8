// Time limits of exchanges, by the given Clock. After dispose no timer and no listener remains.
import { onAbort } from "../../base/abort.ts";
import type { Clock, Timer } from "../../base/clock.ts";
import { MeshError } from "../../base/errors.ts";

export interface Deadline extends Disposable {
  readonly signal: AbortSignal;
  /** Restarts the time limit, since something arrived. */
  touch(): void;
}

/** The signal fires `KUBE_TIMEOUT` when `timeoutMs` pass without a touch, or with the reason of `parent`. */
export function createDeadline(clock: Clock, timeoutMs: number, doing: string, parent?: AbortSignal): Deadline {
  const controller = new AbortController();
  let touchedMs = clock.monotonicMs();
  let timer: Timer;
  // One timer checks the last touch. So a chunk does not start a new timer.
  const arm = (delayMs: number) => {
    timer = clock.after(delayMs, () => {
      const leftMs = touchedMs + timeoutMs - clock.monotonicMs();
      if (leftMs > 0) arm(leftMs);
      else controller.abort(new MeshError("KUBE_TIMEOUT", `${doing}: nothing arrived for ${timeoutMs} ms`));
    });
  };
  arm(timeoutMs);
  const unlink = parent && onAbort(parent, () => controller.abort(parent.reason));
  return {
    signal: controller.signal,
    touch() {
      touchedMs = clock.monotonicMs();
    },
    [Symbol.dispose]() {
      timer.cancel();
      unlink?.();
    },
  };
}
