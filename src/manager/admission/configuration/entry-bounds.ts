// The bounds of the webhooks' entries. Pure. The API server bounds the size of the object with the entries of all apps. So each
// namespace has a share of the entries, and each entry is bounded: no app keeps the pods of later apps from being injected.
import { countTerms, type LabelSelector } from "../../../api/label-selector.ts";
import type { App } from "../../apps/app.ts";

/** With one CA the object has room for 1,900 entries. */
export const MAX_ENTRIES_PER_NAMESPACE = 64;
/** As JSON. The selector of one VirtualApp could have 140,000 characters, a tenth of the object. */
const MAX_SELECTOR_CHARS = 1_024;

/** The oldest apps of each namespace, valid or not, so that a new app takes no other app's place. */
export function withinShare(apps: readonly App[]): App[] {
  return [...Map.groupBy(apps, ({ ref }) => ref.namespace).values()].flatMap((inNamespace) =>
    inNamespace.length <= MAX_ENTRIES_PER_NAMESPACE
      ? inNamespace
      : inNamespace.toSorted(byAge).slice(0, MAX_ENTRIES_PER_NAMESPACE),
  );
}

/** Leaves out the terms that have no room. Then the API server asks about other pods too, which pass. */
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

export function fitsEntry(selector: LabelSelector): boolean {
  return countTerms(withinEntry(selector)) === countTerms(selector);
}

function byAge(a: App, b: App): number {
  const keyOf = ({ object: { metadata }, ref }: App) => `${metadata.creationTimestamp ?? ""} ${ref.name}`;
  return keyOf(a) < keyOf(b) ? -1 : 1;
}
