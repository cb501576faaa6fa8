// The namespaces to ask for while a watch is renewed: the first change, and the changes that come before the answers. Invariant: after
// `end` nothing is followed any more. Called by renewing-watch.ts.
import type { Collection } from "../relist/collection.ts";
import { hasLostOneOf, type Resync } from "../relist/resync.ts";
import { MAX_MOVED, type MovedNamespaces } from "../relist/view-change.ts";

export class MovesMeanwhile {
  #moved: MovedNamespaces | undefined;
  #hasMore = true;
  /** Follows no more changes. */
  readonly end: () => void;

  /** @param onChange called for each change that touches the collection */
  constructor(resync: Resync, collection: Collection, first: MovedNamespaces, onChange: () => void) {
    this.#moved = first;
    this.end = resync.watching(collection, ({ gained, lost, moved: next }, removed, before) => {
      // The last events of a deleted namespace are still to be shown, which only a watch knows that has seen it.
      const hasGone = hasLostOneOf(removed, collection, before);
      if (!gained && !lost && !hasGone) return;
      onChange();
      this.#hasMore = true;
      this.#moved = this.#moved && next && !hasGone ? together(this.#moved, next) : undefined;
    });
  }

  /** A change has come since the last `take`. */
  get hasMore(): boolean {
    return this.#hasMore;
  }

  /** All that has moved; undefined if that is not known, or too much. */
  take(): MovedNamespaces | undefined {
    this.#hasMore = false;
    return this.#moved;
  }
}

// Two changes as one. A namespace that came and went again, or went and came again, has not moved. Undefined if it is too much.
function together(first: MovedNamespaces, next: MovedNamespaces): MovedNamespaces | undefined {
  const gained = [...without(first.gained, next.lost), ...without(next.gained, first.lost)];
  const lost = [...without(first.lost, next.gained), ...without(next.lost, first.gained)];
  return gained.length + lost.length > MAX_MOVED ? undefined : { gained: [...new Set(gained)], lost: [...new Set(lost)] };
}

function without(names: readonly string[], others: readonly string[]): string[] {
  return names.filter((name) => !others.includes(name));
}
