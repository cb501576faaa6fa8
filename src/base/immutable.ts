// The readonly form of an inferred type, so that the compiler rejects code that changes a stored object or a rule.

/** `T` with all properties and arrays readonly, at every depth. */
export type Immutable<T> = T extends readonly (infer Item)[]
  ? readonly Immutable<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: Immutable<T[Key]> }
    : T;
