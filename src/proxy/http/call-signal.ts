// The end of a call, as a signal: a plain object, since every request has one. An AbortController for each
// would be dear: Node keeps its signals alive through collections of the young generation (node --trace-gc).
import { type AbortSource, onAbort } from "../../base/abort.ts";
import { MeshError } from "../../base/errors.ts";

/** A part of AbortSignal. Listeners are called once, and never if added after it fired. */
export type CallSignal = AbortSource;

/** What a listener throws comes out of `abort`, once all have run. */
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

/**
 * Resolves when `done` is called without an error. Rejects with that error, or with `ABORTED` once the signal
 * fires.
 * @param doing what is waited for, in the message of the error
 * @param begin calls `done` later, and returns what undoes its preparations at the end
 */
export function unlessAborted(
  signal: CallSignal,
  doing: string,
  begin: (done: (error?: Error) => void) => () => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const undo = begin((error) => {
      unlink();
      undo();
      if (error === undefined) resolve();
      else reject(error);
    });
    const unlink = onAbort(signal, () => {
      undo();
      reject(new MeshError("ABORTED", `${doing}: aborted`, { cause: signal.reason }));
    });
  });
}
