// Time limits for exchanges, by the given Clock: one for a whole request, and one for silence on a stream. Each yields a
// signal that also follows the caller's. Invariant: after dispose no timer and no listener is left.
import type { Clock, Timer } from "../../base/clock.ts";
import { MeshError } from "../../base/errors.ts";

export interface Deadline extends Disposable {
  readonly signal: AbortSignal;
  /** Something arrived: the time runs anew. */
  touch(): void;
}

/** A signal that fires `KUBE_TIMEOUT` once `timeoutMs` passed without a touch, or with the reason of `parent`. */
export function createDeadline(clock: Clock, timeoutMs: number, doing: string, parent?: AbortSignal): Deadline {
  const controller = new AbortController();
  let touchedMs = clock.monotonicMs();
  let timer: Timer;
  const onParent = () => controller.abort(parent?.reason);
  // One timer that looks back, instead of a new one at every chunk.
  const arm = (delayMs: number) => {
    timer = clock.after(delayMs, () => {
      const leftMs = touchedMs + timeoutMs - clock.monotonicMs();
      if (leftMs > 0) arm(leftMs);
      else controller.abort(new MeshError("KUBE_TIMEOUT", `${doing}: nothing for ${timeoutMs} ms`));
    });
  };
  arm(timeoutMs);
  if (parent?.aborted) onParent();
  else parent?.addEventListener("abort", onParent, { once: true });
  return {
    signal: controller.signal,
    touch: () => {
      touchedMs = clock.monotonicMs();
    },
    [Symbol.dispose]() {
      timer.cancel();
      parent?.removeEventListener("abort", onParent);
    },
  };
}
