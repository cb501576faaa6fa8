// Finds overlaps between many lists of resources, of any shape. Pure. Invariant: the cost is linear in the
// pairs of API groups and resources.
import { WILDCARD } from "./resource-match.ts";
import { type Finding, fieldAt, itemsOf, stringsOf } from "./rule.ts";

export interface ResourceIndex<T> {
  add(resources: readonly unknown[], item: T): void;
  /** The first of the items that have a resource in common with these. */
  firstOverlap(resources: readonly unknown[]): T | undefined;
}

/** Stands for any group or resource. It is not a valid name. */
const SOME = "?";

export function createResourceIndex<T>(): ResourceIndex<T> {
  const items: T[] = [];
  /** The index of the first item, by group and resource. */
  const first = new Map<string, number>();
  return {
    add(resources, item) {
      const index = items.push(item) - 1;
      for (const [group, resource] of pairsOf(resources)) {
        for (const key of keysOf([group, SOME], [resource, SOME])) if (!first.has(key)) first.set(key, index);
      }
    },
    firstOverlap(resources) {
      let found = Number.POSITIVE_INFINITY;
      for (const [group, resource] of pairsOf(resources)) {
        for (const key of keysOf(asked(group), asked(resource))) found = Math.min(found, first.get(key) ?? found);
      }
      return items[found];
    },
  };
}

/** Far more than any user lists. The check takes a tenth of a second. */
const MAX_PAIRS = 32_768;

/** The last finding, since other rules would take too long. */
export function* boundedPairs(lists: readonly unknown[], path: readonly string[]): Iterable<Finding> {
  const pairs = lists.reduce<number>((sum, resources) => sum + pairCount(resources), 0);
  if (pairs <= MAX_PAIRS) return;
  const message = `lists ${pairs} pairs of an API group and a resource in total; at most ${MAX_PAIRS} are allowed, so use "*" for all`;
  yield { path, message, isLast: true };
}

export function pairCount(resources: unknown): number {
  return itemsOf(resources).reduce<number>((sum, each) => {
    return sum + stringsOf(fieldAt(each, "apiGroups")).length * stringsOf(fieldAt(each, "resources")).length;
  }, 0);
}

function* pairsOf(resources: readonly unknown[]): Iterable<readonly [group: string, resource: string]> {
  for (const each of resources) {
    const names = stringsOf(fieldAt(each, "resources"));
    for (const group of stringsOf(fieldAt(each, "apiGroups"))) for (const name of names) yield [group, name];
  }
}

function asked(name: string): readonly string[] {
  return name === WILDCARD ? [SOME] : [name, WILDCARD];
}

function keysOf(groups: readonly string[], resources: readonly string[]): string[] {
  return groups.flatMap((group) => resources.map((resource) => `${group}/${resource}`));
}
