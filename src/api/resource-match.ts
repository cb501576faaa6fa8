// The resources of a rule: API groups and plural resource names. Pure.
import { z } from "zod";
import { type Immutable, jsonText } from "../base/json.ts";
import { nonEmptyList, textUpTo } from "./fields.ts";
import { type Finding, fieldAt, itemsOf, stringsOf } from "./rule.ts";

export const WILDCARD = "*";

export const apiGroupSchema = textUpTo(253).regex(/^(\*|[a-z0-9]+(-+[a-z0-9]+)*(\.[a-z0-9]+(-+[a-z0-9]+)*)*)?$/, {
  error: 'must be an API group such as "apps", "" for the core group, or "*" for all',
});

// No slash: a subresource belongs to its object.
const resourceSchema = textUpTo(63).regex(/^(\*|[a-z0-9]+(-+[a-z0-9]+)*)$/, {
  error: ({ input }) => resourceMessage(jsonText(input)),
});

/** The group and the resource must both match. */
export const resourceMatchSchema = z.strictObject({
  apiGroups: nonEmptyList(apiGroupSchema, 32, '"" is the core group, "*" all groups').describe(
    'API groups. "" is the core group, "*" matches all groups.',
  ),
  resources: nonEmptyList(resourceSchema, 64, '"*" stands for all resources').describe(
    'Plural resource names, for example "pods". "*" matches all resources. Subresources are included.',
  ),
});

export type ResourceMatch = Immutable<z.output<typeof resourceMatchSchema>>;

function resourceMessage(name: string): string {
  const parent = name.split("/")[0] ?? "";
  if (name.includes("/")) return `must not name a subresource, which belongs to its object: write ${JSON.stringify(parent)}`;
  return 'must be a plural resource name in lower case such as "pods", or "*" for all';
}

/** Stands for any group or resource. It is not a valid name. */
const SOME = "?";

/** Finds overlaps of lists of resources, of any shape, at a cost linear in the pairs of group and resource. */
export function createResourceIndex<T>() {
  const items: T[] = [];
  /** The index of the first item, by group and resource. */
  const first = new Map<string, number>();
  return {
    add(resources: readonly unknown[], item: T) {
      const index = items.push(item) - 1;
      for (const [group, resource] of pairsOf(resources)) {
        for (const key of keysOf([group, SOME], [resource, SOME])) if (!first.has(key)) first.set(key, index);
      }
    },
    /** The first of the items that have a resource in common with these. */
    firstOverlap(resources: readonly unknown[]): T | undefined {
      let found = Number.POSITIVE_INFINITY;
      for (const [group, resource] of pairsOf(resources)) {
        for (const key of keysOf(namesOf(group), namesOf(resource))) found = Math.min(found, first.get(key) ?? found);
      }
      return items[found];
    },
  };
}

/** Far more than any user lists. The check takes a tenth of a second. */
const MAX_PAIRS = 32_768;

/** Ends the checks (`isLast`), since other rules would take too long. */
export function* boundedResourcePairs(lists: readonly unknown[], path: readonly string[]): Iterable<Finding> {
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

function namesOf(name: string): readonly string[] {
  return name === WILDCARD ? [SOME] : [name, WILDCARD];
}

function keysOf(groups: readonly string[], resources: readonly string[]): string[] {
  return groups.flatMap((group) => resources.map((resource) => `${group}/${resource}`));
}
