// Results that are computed once for each key, which must never change: a route table, a stored object.

/** The function, which remembers each result as long as its key lives. */
export function remember<K extends object, V>(make: (key: K) => V): (key: K) => V {
  return rememberIn(new WeakMap<K, V>(), make);
}

/** The same for large results: each is forgotten when nobody else uses it. */
export function rememberWeakly<K extends object, V extends object>(make: (key: K) => V): (key: K) => V {
  const known = new WeakMap<K, WeakRef<V>>();
  return (key) => {
    const value = known.get(key)?.deref() ?? make(key);
    known.set(key, new WeakRef(value));
    return value;
  };
}

/** The same for names and numbers: the results live as long as the function. */
export function rememberNames<V, K extends string | number = string>(make: (name: K) => V): (name: K) => V {
  return rememberIn(new Map<K, V>(), make);
}

interface Memory<K, V> {
  get(key: K): V | undefined;
  set(key: K, value: V): unknown;
}

function rememberIn<K, V>(known: Memory<K, V>, make: (key: K) => V): (key: K) => V {
  return (key) => {
    const found = known.get(key);
    if (found !== undefined) return found;
    const value = make(key);
    known.set(key, value);
    return value;
  };
}

/** The result of the first call. */
export function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
