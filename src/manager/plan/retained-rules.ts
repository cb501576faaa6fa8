// First-match lists of resources in one canonical form, so that equal views are equal texts and repeated edits do not make lists grow. Pure;
// called by retained.ts. A list is asked about the names that it mentions and about one placeholder for all others, which no list distinguishes.
import { matchesResource, type RetainedRule } from "../../route/table.ts";

/** A name that no resource and no group has: only the wildcard matches it. */
const OTHER = "/";

/** What the first rule that applies says; nothing applies: not visible. */
export function isVisibleBy(rules: readonly RetainedRule[], group: string, resource: string): boolean {
  const first = rules.find(({ resources }) => resources.length === 0 || matchesResource(resources, group, resource));
  return first?.visible ?? false;
}

/**
 * The shortest list that says the same as a question about lists.
 * @param lists every list that the question asks
 */
export function canonicalRules(
  lists: readonly (readonly RetainedRule[])[],
  isVisible: (group: string, resource: string) => boolean,
): RetainedRule[] {
  const matches = lists.flatMap((list) => list.flatMap(({ resources }) => resources));
  const groups = named(matches.flatMap(({ apiGroups }) => apiGroups));
  const resources = named(matches.flatMap((match) => match.resources));
  const fallback = isVisible(OTHER, OTHER);
  const otherGroups = groups.filter((group) => isVisible(group, OTHER) !== fallback);
  const otherResources = resources.filter((resource) => isVisible(OTHER, resource) !== fallback);
  // What the wildcards below would say wrongly.
  const exact = groups.flatMap((group) =>
    [true, false].flatMap((visible): RetainedRule[] => {
      const those = resources.filter((resource) => {
        const isOther = otherGroups.includes(group) || otherResources.includes(resource);
        return isVisible(group, resource) === visible && (isOther ? !fallback : fallback) !== visible;
      });
      return those.length === 0 ? [] : [{ resources: [{ apiGroups: [group], resources: those }], visible }];
    }),
  );
  const wide = [
    ...(otherGroups.length === 0 ? [] : [{ apiGroups: otherGroups, resources: ["*"] }]),
    ...(otherResources.length === 0 ? [] : [{ apiGroups: ["*"], resources: otherResources }]),
  ];
  return [
    ...exact,
    ...(wide.length === 0 ? [] : [{ resources: wide, visible: !fallback }]),
    ...(fallback ? [{ resources: [], visible: true }] : []),
  ];
}

function named(names: readonly string[]): string[] {
  return [...new Set(names)].filter((name) => name !== "*").sort();
}
