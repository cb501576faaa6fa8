// The end of a call, as a signal: a plain object, since every request has one. An AbortController for each
// would cost memory: Node keeps its signal until a full collection (node --trace-gc).
import { type AbortSource, onAbort } from "../../base/abort.ts";
import { MeshError } from "../../base/errors.ts";

/** A part of AbortSignal. Listeners are called once, and never if added after it fired. */
export type CallSignal = AbortSource;

/** `abort` throws the first error of a listener, after all listeners have run. */
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
    // One at a time: a listener that another one removes does not run.
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
 * Settles when `done` is called, or rejects with `ABORTED` once the signal fires.
 * @param doing begins the error's message
 * @param begin calls `done` later; the function that it returns runs at the end and undoes its preparations
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
