// The readonly view of what a schema infers. Kind files export their types through it, so that no reader of a custom
// resource can change what a store holds.

/** `T` with every property and every array readonly, to the bottom. */
export type Immutable<T> = T extends readonly (infer Item)[]
  ? readonly Immutable<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: Immutable<T[Key]> }
    : T;
