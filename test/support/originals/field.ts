// The form of the lists of fields of the originals' Go types. Each value of a field either works, is ignored with a
// sentence in the status, or is refused with a sentence that docs/migration.md has too.

export type Fields = Readonly<Record<string, unknown>>;

export interface FieldCase {
  /** Undefined: the field is absent. */
  readonly value?: unknown;
  /** Values of other fields, by their paths, that the case needs. */
  readonly given?: Fields;
  /** Another value: with it, the compiled policy is not the same. Undefined: the field is absent. */
  readonly unlike?: unknown;
  /** The message of the only problem. Without it and without `note`, the value works. */
  readonly refused?: string;
  /** The value has no effect, and this is why. */
  readonly note?: string;
}

export interface OriginalType {
  readonly kind: "CircuitBreaker" | "FaultInjection" | "TrafficPolicy";
  /** A new object in which each field that may stand beside the others is set. */
  readonly sample: () => object;
  /** By the paths of the fields as Go's JSON tags write them, with [] for each list. */
  readonly fields: Readonly<Record<string, readonly FieldCase[]>>;
  /** Fields that only the original's manager writes. Ours writes those that its schema has. */
  readonly status: readonly string[];
  /** Fields of older versions of the type, which the API server does not know. */
  readonly older: Readonly<Record<string, unknown>>;
}

/** The sample with the values of the case. */
export function objectWith({ sample }: OriginalType, path: string, { given = {}, value }: FieldCase): unknown {
  const object = Object.entries(given).reduce<unknown>((base, [field, needed]) => withField(base, field, needed), sample());
  return withField(object, path, value);
}

/** Sets a field of a copy of the object. In lists it takes the first item. */
export function withField(object: unknown, path: string, value: unknown): unknown {
  return set(object, path.replaceAll("[]", ".0").split("."), value);
}

function set(target: unknown, [name = "", ...rest]: readonly string[], value: unknown): unknown {
  const copy = Array.isArray(target) ? [...target] : { ...(target as object) };
  const inner = rest.length === 0 ? value : set(Reflect.get(copy, name), rest, value);
  if (inner === undefined) Reflect.deleteProperty(copy, name);
  else Reflect.set(copy, name, inner);
  return copy;
}

export const ONE_OF_METHODS =
  'must be one of "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "*"; did you mean "POST"?';
export const EMPTY_LIST = 'must not be empty; use "*" for all';
export const ABSENT_LIST = 'required; use "*" for all';
export const ALONE = '"*" must be the only item of its list';
export const HOST = 'must be a host such as "example.com", "example.com:443" or "[2001:db8::1]"';
export const ONE_LINE = "must be a text of one line, without a space at either end";
export const EMPTY_SELECTOR = "must have at least one term: an empty selector matches everything";
export const DURATION = 'must be a duration such as "300ms", "10s" or "1m30s"';
export const RE2 = "does not compile as RE2";
export const RESOURCE =
  'must be a plural resource name such as "pods", a subresource such as "pods/status" or "*/scale", or "*" for all';
export const PROXY_VERB = 'matches no request: to limit a proxy request, list "pods/proxy" in resources, and its verbs here';

/** The cases of a list of a rule about objects, beside those in which it works. */
export const LIST_CASES: readonly FieldCase[] = [
  { value: [], refused: EMPTY_LIST },
  { value: ["*", "a"], refused: ALONE },
];
