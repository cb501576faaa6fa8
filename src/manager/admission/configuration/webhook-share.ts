// What one app, and the apps of one namespace, may take of the object that has the webhook entries of all
// apps. The API server bounds that object, so whoever filled it would keep the pods of all later apps from
// being injected. Pure. Invariant: an entry that is in force is never left out for the sake of another one.
import type { LabelSelector } from "../../../api/label-selector.ts";
import type { App } from "../../apps/app.ts";

/** The entries of one namespace. With one CA the object has room for 1,900. */
export const MAX_ENTRIES_PER_NAMESPACE = 64;
/**
 * The length of the terms of a selector, as JSON. One VirtualApp could have 140,000, a tenth of the object.
 */
const MAX_SELECTOR_CHARS = 1_024;

/**
 * The apps that may have an entry: of each namespace the oldest, valid or not, so that no app takes the place
 * of another one.
 */
export function withinShare(apps: readonly App[]): App[] {
  return [...Map.groupBy(apps, ({ ref }) => ref.namespace).values()].flatMap((inNamespace) =>
    inNamespace.length <= MAX_ENTRIES_PER_NAMESPACE
      ? inNamespace
      : inNamespace.toSorted(byAge).slice(0, MAX_ENTRIES_PER_NAMESPACE),
  );
}

/**
 * The selector without the terms that have no room. It selects more: the API server asks about other pods of
 * the app's namespace too, and the webhook lets them pass as they are.
 */
export function withinEntry({ matchLabels = {}, matchExpressions = [] }: LabelSelector): LabelSelector {
  let charsLeft = MAX_SELECTOR_CHARS;
  const hasRoom = (term: unknown) => {
    const { length } = JSON.stringify(term);
    if (length > charsLeft) return false;
    charsLeft -= length;
    return true;
  };
  return {
    matchLabels: Object.fromEntries(Object.entries(matchLabels).filter(hasRoom)),
    matchExpressions: matchExpressions.filter(hasRoom),
  };
}

/** True if the entry has room for the whole selector. */
export function fitsEntry(selector: LabelSelector): boolean {
  const { matchLabels = {}, matchExpressions = [] } = withinEntry(selector);
  return (
    Object.keys(matchLabels).length === Object.keys(selector.matchLabels ?? {}).length &&
    matchExpressions.length === (selector.matchExpressions ?? []).length
  );
}

function byAge(a: App, b: App): number {
  const keyOf = ({ object: { metadata }, ref }: App) => `${metadata.creationTimestamp ?? ""} ${ref.name}`;
  return keyOf(a) < keyOf(b) ? -1 : 1;
}
