// The end of a call, as a signal. Every request has one, and an AbortController for each is dear: Node keeps
// its signals alive through collections of the young generation (node --trace-gc). This one is a plain
// object; an AbortSignal may be given wherever it is asked for.

import type { AbortSource } from "../../base/abort.ts";

/** A part of AbortSignal. Listeners are called once, and never if added after it fired. */
export type CallSignal = AbortSource;

/** A signal with the means to fire it. What a listener throws comes out of `abort`, once all have run. */
export class CallAbort implements CallSignal {
  aborted = false;
  reason: unknown;
  #listeners: (() => void)[] | undefined = [];

  abort(reason: unknown): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    const listeners = this.#listeners ?? [];
    let failure: { readonly error: unknown } | undefined;
    // One at a time, so that one that another has removed meanwhile does not run.
    for (let listener = listeners.shift(); listener !== undefined; listener = listeners.shift()) {
      try {
        listener();
      } catch (error) {
        failure ??= { error };
      }
    }
    this.#listeners = undefined;
    if (failure !== undefined) throw failure.error;
  }

  addEventListener(_type: "abort", listener: () => void): void {
    if (!this.aborted) this.#listeners?.push(listener);
  }

  removeEventListener(_type: "abort", listener: () => void): void {
    const index = this.#listeners?.indexOf(listener) ?? -1;
    if (index >= 0) this.#listeners?.splice(index, 1);
  }
}
