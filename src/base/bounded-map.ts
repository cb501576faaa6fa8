/**
 * A Map with an upper bound, for keys from outside. `set` makes its entry the newest, and above the bound
 * removes the oldest; reading does not make an entry newer. The iteration order is from the oldest entry to
 * the newest.
 */
export class BoundedMap<K, V> extends Map<K, V> {
  readonly #maxSize: number;

  /** @param maxSize the number of entries, at least 1 */
  constructor(maxSize: number) {
    super();
    this.#maxSize = maxSize;
  }

  override set(key: K, value: V): this {
    this.delete(key);
    super.set(key, value);
    if (this.size <= this.#maxSize) return this;
    for (const oldest of this.keys().take(1)) this.delete(oldest);
    return this;
  }
}
