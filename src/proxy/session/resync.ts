// Decides who must list again after a route change, and when. Invariant: a watch never goes on, and never starts, from a
// resourceVersion of a list that did not hold what is the subset's now (or held what no longer is). Live watches are told
// at once; a watch that starts within the window after a change is refused unless the same client has listed since.
import type { Clock } from "../../base/clock.ts";
import { createLeftOut, type LeftOut } from "./left-out.ts";
import type { Enforced, GroupResource, Session } from "./session.ts";
import { changeBetween, type RouteChange, type ViewChange } from "./view-change.ts";

/** A collection as one client asks for it. */
export interface Collection extends GroupResource {
  /** "" for all namespaces. */
  readonly namespace: string;
  /** Equal for the list and the watch of one informer: path and selectors as the client sent them. */
  readonly shape: string;
}

export type WatchListener = (change: ViewChange, removed: readonly string[], before: Enforced) => void;

export interface Resync {
  readonly leftOut: LeftOut;
  /** A list that starts at its beginning, or a watch that sends the whole state first. */
  listBegun(collection: Collection): void;
  /** True if a watch of the collection from an old resourceVersion could have missed something. */
  mustListAgain(collection: Collection): boolean;
  /** Tells a live watch about every later snapshot. Returns the unsubscription. */
  watching(collection: Collection, listener: WatchListener): () => void;
  close(): void;
}

/** How long after a change a watch that goes on from an old list is refused. client-go comes back within seconds. */
export const RESYNC_WINDOW_MS = 30_000;

interface PastChange {
  readonly seq: number;
  readonly atMs: number;
  of(group: string, resource: string, namespace: string): ViewChange;
}

const MAX_SHAPES = 1_000;

export function createResync(session: Session, clock: Clock, windowMs = RESYNC_WINDOW_MS): Resync {
  const leftOut = createLeftOut();
  const live = new Map<WatchListener, Collection>();
  const listedAt = new Map<string, number>();
  const startMs = clock.monotonicMs();
  let past: PastChange[] = [];
  let seq = 0;

  const forget = () => {
    const horizonMs = clock.monotonicMs() - windowMs;
    if (past.every((change) => change.atMs > horizonMs)) return;
    past = past.filter((change) => change.atMs > horizonMs);
    const oldest = past[0]?.seq ?? seq + 1;
    for (const [shape, at] of listedAt) if (at < oldest) listedAt.delete(shape);
  };

  const close = session.onChange((now, before) => {
    const granted = leftOut.settle(now);
    if (before === undefined) return;
    forget();
    // What this process left out before a restart is not known, so that just after it every new namespace counts.
    const change = changeBetween(before, now, clock.monotonicMs() - startMs < windowMs);
    const of = withGrants(change, granted);
    past.push({ seq: ++seq, atMs: clock.monotonicMs(), of });
    for (const [listener, { group, resource, namespace }] of [...live]) {
      if (live.has(listener)) listener(of(group, resource, namespace), change.removed, before);
    }
  });

  return {
    leftOut,
    listBegun({ shape }) {
      forget();
      if (past.length === 0) return;
      if (listedAt.size >= MAX_SHAPES) listedAt.clear();
      listedAt.set(shape, seq);
    },
    mustListAgain({ group, resource, namespace, shape }) {
      forget();
      const listed = listedAt.get(shape) ?? -1;
      return past.some((change) => {
        if (change.seq <= listed) return false;
        const { gained, lost } = change.of(group, resource, namespace);
        return gained || lost;
      });
    },
    watching(collection, listener) {
      live.set(listener, collection);
      return () => live.delete(listener);
    },
    close,
  };
}

function withGrants(change: RouteChange, granted: ReturnType<LeftOut["settle"]>): PastChange["of"] {
  return (group, resource, namespace) => {
    const { gained, lost } = change.of(group, resource, namespace);
    return { gained: gained || granted(group, resource, namespace), lost };
  };
}
