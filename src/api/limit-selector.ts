// The selector of a limit. Two of its keys are computed from the name of the object's namespace. Invariant:
// no other key but the shard key has KusionStack's prefix, because no label of an object has it.
import { atomicMap, celRules } from "./extensions.ts";
import { longSelector } from "./label-selector.ts";
import { dnsLabelSchema } from "./names.ts";
import { nearest } from "./nearest.ts";
import { type Finding, fieldAt, fieldsOf, itemsOf, type Path, stringsOf, withRules } from "./rule.ts";
import { NAMESPACE, SHARD, SHARD_HASH, SHARDING_PREFIX } from "./sharding-keys.ts";

export const MAX_LISTED_NAMESPACES = 1_024;

const COMPUTED_KEYS = [SHARD_HASH, NAMESPACE] as const;
export const HASH_VALUE = /^([0-9]|[12][0-9]|3[01])$/;

const KNOWN_KEYS = [...COMPUTED_KEYS, SHARD].map((key) => `"${key}"`).join(", ");
const WRONG_KEY = `the computed keys are "${SHARD_HASH}" and "${NAMESPACE}"; no other key may begin with ${SHARDING_PREFIX}`;
export const WRONG_HASH = 'must be a whole number from "0" to "31"';

// These rules do not check the values: that would exceed the cost limit of CEL.
const KEY_RULES = [
  {
    rule: `!has(self.matchLabels) || self.matchLabels.all(k, !k.startsWith("${SHARDING_PREFIX}") || k in [${KNOWN_KEYS}])`,
    message: WRONG_KEY,
  },
  {
    rule: `!has(self.matchExpressions) || self.matchExpressions.all(e, !e.key.startsWith("${SHARDING_PREFIX}") || e.key in [${KNOWN_KEYS}])`,
    message: WRONG_KEY,
  },
];

export const limitSelectorSchema = withRules(
  longSelector(MAX_LISTED_NAMESPACES).meta({ ...atomicMap(), ...celRules(...KEY_RULES) }),
  computedKeysRule,
);

function* computedKeysRule(selector: unknown): Iterable<Finding> {
  for (const { key, keyPath, values } of termsOf(selector)) {
    if (!key.startsWith(SHARDING_PREFIX) || key === SHARD) continue;
    if (key === SHARD_HASH || key === NAMESPACE) {
      for (const { path, value } of values) {
        const message = wrongValue(key, value);
        if (message !== undefined) yield { path, value, message };
      }
    } else yield { path: keyPath, value: key, message: `is not a computed key: ${WRONG_KEY}${suggestion(key)}` };
  }
}

function suggestion(key: string): string {
  // Compares the keys without their common prefix: with it, any two keys would be similar.
  const name = nearest(
    key.slice(SHARDING_PREFIX.length),
    COMPUTED_KEYS.map((known) => known.slice(SHARDING_PREFIX.length)),
  );
  return name === undefined ? "" : `; did you mean "${SHARDING_PREFIX}${name}"?`;
}

function wrongValue(key: typeof SHARD_HASH | typeof NAMESPACE, value: string): string | undefined {
  if (key === SHARD_HASH) return HASH_VALUE.test(value) ? undefined : WRONG_HASH;
  return dnsLabelSchema.safeParse(value).success ? undefined : "must be the name of a namespace: no namespace can have this name";
}

interface Term {
  readonly key: string;
  readonly keyPath: Path;
  readonly values: readonly { readonly path: Path; readonly value: string }[];
}

export function termsOf(selector: unknown): readonly Term[] {
  const labels = Object.entries(fieldsOf(fieldAt(selector, "matchLabels"))).map(([key, value]): Term => {
    const path = ["matchLabels", key];
    return { key, keyPath: path, values: stringsOf([value]).map((each) => ({ path, value: each })) };
  });
  const expressions = itemsOf(fieldAt(selector, "matchExpressions")).flatMap((expression, index): Term[] => {
    const key = fieldAt(expression, "key");
    if (typeof key !== "string") return [];
    const path = ["matchExpressions", index];
    const values = itemsOf(fieldAt(expression, "values")).flatMap((value, at) =>
      typeof value === "string" ? [{ path: [...path, "values", at], value }] : [],
    );
    return [{ key, keyPath: [...path, "key"], values }];
  });
  return [...labels, ...expressions];
}
