// The listeners of one kind of event.

/** `tell` calls them in the order in which they were added. A listener may add and remove others meanwhile; each may be added twice. */
export function createListeners<T>() {
  const listeners = new Set<(event: T) => void>();
  return {
    /** Returns the unsubscription. */
    add(listener: (event: T) => void): () => void {
      const entry = (event: T) => listener(event);
      listeners.add(entry);
      return () => void listeners.delete(entry);
    },
    tell(event: T): void {
      for (const listener of [...listeners]) if (listeners.has(listener)) listener(event);
    },
  };
}
