// The readonly form of an inferred type. Kind files export their types in this form, so that the compiler
// rejects code that changes an object in a store.

/** `T` with all properties and arrays readonly, at every depth. */
export type Immutable<T> = T extends readonly (infer Item)[]
  ? readonly Immutable<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: Immutable<T[Key]> }
    : T;
