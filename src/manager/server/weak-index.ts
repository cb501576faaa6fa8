// Values that several owners share, found by key. Invariant: the index forgets each value that nobody else
// references.

export interface WeakIndex<T> {
  get(key: string): T | undefined;
  set(key: string, value: T): void;
  /** The number of keys; some may have lost their values since the last sweep. */
  readonly size: number;
}

const FIRST_SWEEP = 64;

export function createWeakIndex<T extends object>(): WeakIndex<T> {
  const refs = new Map<string, WeakRef<T>>();
  let sweepAt = FIRST_SWEEP;
  return {
    get: (key) => refs.get(key)?.deref(),
    set(key, value) {
      refs.set(key, new WeakRef(value));
      if (refs.size < sweepAt) return;
      for (const [other, ref] of refs) if (ref.deref() === undefined) refs.delete(other);
      sweepAt = Math.max(FIRST_SWEEP, refs.size * 2);
    },
    get size() {
      return refs.size;
    },
  };
}
