// The listeners of a session's changes. Invariant: all are called, in the order of their subscription, whatever one throws.
import type { ChangeListener, Enforced } from "./session.ts";

export function createChangeListeners(onError: (error: unknown) => void) {
  const listeners = new Set<ChangeListener>();
  return {
    /** Returns the unsubscription. */
    add(listener: ChangeListener): () => void {
      // One entry for each call, so that the same function may be subscribed twice.
      const entry: ChangeListener = (now, before) => listener(now, before);
      listeners.add(entry);
      return () => listeners.delete(entry);
    },
    notify(now: Enforced, before: Enforced | undefined): void {
      for (const listener of [...listeners]) {
        try {
          if (listeners.has(listener)) listener(now, before);
        } catch (error) {
          onError(error);
        }
      }
    },
  };
}
