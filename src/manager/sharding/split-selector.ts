// Splits the selector of a limit. Terms of computed keys become a test of the namespace; the others stay
// terms of the objects' labels. Pure. Invariant: the test uses the namespace's name and what the manager
// computes from it, and never a label that somebody has set.
import type { LabelSelector } from "../../api/label-selector.ts";
import { NAMESPACE, SHARD, SHARD_HASH } from "../../api/sharding-keys.ts";
import { formatTerms, type LabelTerm, termsOfSelector } from "../../kube/label-selector.ts";
import { placeHash } from "../../kube/place.ts";

/** The values of the computed keys for one namespace. */
export interface ComputedKeys {
  readonly name: string;
  readonly hash: string;
  /** The shard to which the placement of a root assigns the namespace; "" in hand-written families. */
  readonly shard: string;
}

export type NamespaceTest = (keys: ComputedKeys) => boolean;

export function computedKeys(name: string, shard = ""): ComputedKeys {
  return { name, hash: String(placeHash(name)), shard };
}

export interface SplitSelector {
  readonly contains: NamespaceTest;
  /** Equal texts mean equal tests. */
  readonly testText: string;
  readonly terms: readonly LabelTerm[];
}

/** Without a selector, the test contains every namespace and there are no terms. */
export function splitSelector(selector: LabelSelector = {}): SplitSelector {
  const terms = termsOfSelector(selector);
  const computed = terms.filter(({ key }) => readerOf(key) !== undefined);
  const tests = computed.flatMap((term) => testOf(term) ?? []);
  return {
    contains: (keys) => tests.every((test) => test(keys)),
    testText: formatTerms(computed),
    terms: terms.filter(({ key }) => readerOf(key) === undefined),
  };
}

function testOf({ key, operator, values }: LabelTerm): NamespaceTest | undefined {
  const read = readerOf(key);
  if (read === undefined) return undefined;
  const listed = new Set(values);
  switch (operator) {
    case "in":
      return (keys) => listed.has(read(keys));
    case "notin":
      return (keys) => !listed.has(read(keys));
    case "exists":
      return () => true;
    case "!":
      return () => false;
    default:
      return operator satisfies never;
  }
}

function readerOf(key: string): ((keys: ComputedKeys) => string) | undefined {
  if (key === NAMESPACE) return ({ name }) => name;
  if (key === SHARD_HASH) return ({ hash }) => hash;
  return key === SHARD ? ({ shard }) => shard : undefined;
}
