// The listeners of one kind of event.

/** `tell` calls them in the order in which they were added. */
export function createListeners<T>() {
  const listeners = new Set<(event: T) => void>();
  return {
    /** Returns the unsubscription. */
    add(listener: (event: T) => void): () => void {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    tell(event: T): void {
      for (const listener of listeners) listener(event);
    },
  };
}
