// The end of a call, of an attempt or of the process, as a signal.

/** The part of AbortSignal that a listener needs. */
export interface AbortSource {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", listener: () => void, options?: { readonly once: true }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/**
 * Calls the listener once, when the signal fires, or immediately if it has fired. Returns what removes the
 * listener: a signal that outlives the listener's work would keep it in memory.
 */
export function onAbort(signal: AbortSource, listener: () => void): () => void {
  if (signal.aborted) listener();
  else signal.addEventListener("abort", listener, { once: true });
  return () => signal.removeEventListener("abort", listener);
}

/** Resolves when the signal fires. Its listener stays until then. */
export function untilAborted(signal: AbortSource): Promise<void> {
  return new Promise((resolve) => onAbort(signal, resolve));
}
