// Decides which clients must list again, and when. A watch never continues and never starts from a resourceVersion of a list that
// lacked objects the subset now owns, or had objects it no longer owns. Called by the isolate layer and the watch streams.
//
// "410 event" below means HTTP 200 with one ERROR event, which contains a Status 410 Expired (filter/expired.ts).
//
// - A live watch receives every route change at once. It ends itself with a 410 event if the change touches it.
// - A watch that continues from a resourceVersion needs a list of its shape (resource, namespace, selectors). The list must have
//   begun in this process after the last route change that touched it, and must have been answered 200. Otherwise the watch is
//   answered with a 410 event.
// - A process does not know what an earlier process left out, so a restart costs every informer one list.
// - A watch without a resourceVersion, from "0", or with initial events counts as such a list and needs none before it.
// - client-go lists and watches in one shape and lists again after a 410 event, so it is refused once. A client that lists in another
//   shape must not be refused forever. After one refusal a later list of the same resource is enough, in the same namespace or in
//   all. After a minute without a list another resourceVersion than the refused one is enough: the client never lists and takes
//   versions from objects.
//
// If all gained and lost objects are in a few known namespaces, a live watch continues: it requests what those namespaces have,
// or had (renewing-watch.ts). That is no list. After that watch its client must list, since nobody knows how much of it the
// client has read.
//
// All of this follows what the pod may read (`readViewOf`): "own" below includes what the pod retains read-only.
//
// Two informers of the same shape in one operator look the same: the list of one counts for both.
//
// The table has what was not shown (or was shown and is lost), and the file that remembers it, by the state of a namespace before
// and after a change. A "gone" namespace has left the table; a "new" one was never in it. Objects of both are held, and left out
// in the end.
//
// | before, after  | own                            | other subset, moving   | gone, new                                      |
// | -------------- | ------------------------------ | ---------------------- | ---------------------------------------------- |
// | own            | -                              | lost: view-change      | gone: watch-filter shows its last events,      |
// |                |                                |                        | a client without a watch then lists again;     |
// |                |                                |                        | gone-namespaces remembers; new: lost, as it    |
// |                |                                |                        | was shown like all unknown ones: view-change   |
// | other, moving  | gained: view-change            | -                      | gone-namespaces remembers                      |
// | gone           | gained if it was not own then  | lost if it was own     | -                                              |
// |                | (gone-namespaces), or as new   | then: gone-namespaces  |                                                |
// | new            | gained if noted: left-out      | -, it was never shown  | -                                              |
//
// left-out has three kinds of notes: objects dropped by the proxy, by namespace; objects hidden by server-side filtering to one
// namespace or to hash ranges, which may be any; and namespaces excluded by name, which matter only if they go and return. A list
// on its way counts as touched by a change (`listing`), earlier lists are forgotten (listed-shapes), and a live watch receives
// the change.
import { BoundedMap } from "../../base/bounded-map.ts";
import type { Clock } from "../../base/clock.ts";
import { readViewOf } from "../../route/snapshot.ts";
import type { Enforced, Session } from "../session/session.ts";
import type { Collection } from "./collection.ts";
import { createGoneNamespaces } from "./gone-namespaces.ts";
import { createLeftOut, type LeftOut } from "./left-out.ts";
import { createListedShapes } from "./listed-shapes.ts";
import { changeBetween, MAX_MOVED, type MovedNamespaces, type ViewChange } from "./view-change.ts";

export type WatchListener = (change: ViewChange, removed: readonly string[], before: Enforced, born: readonly string[]) => void;

export interface Resync {
  readonly leftOut: LeftOut;
  /** Sends a list from its beginning, or a watch with the whole state first. With 200 it counts as listed. */
  list<Answer extends { readonly status: number }>(collection: Collection, send: () => Promise<Answer>): Promise<Answer>;
  /**
   * True if a watch of the collection from an old resourceVersion could have missed an object.
   * @param version that resourceVersion; undefined to ask again about a watch that was let through
   */
  mustListAgain(collection: Collection, version?: string): boolean;
  /** Calls the listener of a live watch for every later snapshot. Returns the unsubscription. */
  watching(collection: Collection, listener: WatchListener): () => void;
  /** A watch has ended that may not have shown everything to its client. To continue from it a client must list again. */
  endedEarly(collection: Collection): void;
  /** Milliseconds after which one doubtful event may end a watch of the collection. Each call counts as one such end. */
  relistDelayMs(collection: Collection): number;
  close(): void;
}

export function createResync(session: Session, clock: Clock): Resync {
  const leftOut = createLeftOut(clock);
  const shapes = createListedShapes(clock);
  const gone = createGoneNamespaces(clock);
  const pace = createRelistPace(clock);
  const listing = new Set<{ readonly collection: Collection; touched: boolean }>();
  const live = new Map<WatchListener, Collection>();

  const close = session.onChange((now, before) => {
    const change = before === undefined ? undefined : changeBetween(before, now);
    const granted = leftOut.settle(now, change?.born ?? [...now.snapshot.table.classOf.keys()]);
    if (before === undefined || change === undefined) return;
    const reborn = gone.settle(change, before, now);
    const of = (collection: Collection): ViewChange => {
      const { group, resource, namespace } = collection;
      const [one, other] = [change.of(group, resource, namespace), reborn(collection)];
      const gained = one.gained || other.gained || granted.has(group, resource, namespace);
      const lost = one.lost || other.lost;
      if (!(gained || lost) || other.gained || other.lost || namespace !== "") return { gained, lost };
      return { gained, lost, ...movedOf(change.movedIn(group, resource), granted.namesOf(group, resource)) };
    };
    // Reads everything from a change at once, so that nothing of the old snapshot is kept.
    const touches = (collection: Collection) => of(collection).gained || of(collection).lost;
    // Later watches do not show its last events. An open watch shows them, or reports that it could not (endedEarly).
    const hasGone = (collection: Collection) => hasLostOneOf(change.removed, collection, before);
    shapes.forget((collection, isWatched) => touches(collection) || (!isWatched && hasGone(collection)));
    for (const list of listing) list.touched ||= touches(list.collection) || hasGone(list.collection);
    for (const [listener, collection] of [...live]) {
      if (live.has(listener)) listener(of(collection), change.removed, before, change.born);
    }
  });

  return {
    leftOut,
    async list(collection, send) {
      const list = { collection, touched: false };
      const begunAt = shapes.begin();
      listing.add(list);
      try {
        const answer = await send();
        if (answer.status === 200 && !list.touched) shapes.listed(collection, begunAt);
        return answer;
      } finally {
        listing.delete(list);
      }
    },
    mustListAgain: (collection, version) => !shapes.mayContinue(collection, version),
    watching(collection, listener) {
      live.set(listener, collection);
      const release = shapes.hold(collection);
      return () => {
        if (live.delete(listener)) release();
      };
    },
    endedEarly: ({ shape }) => shapes.forget((other) => other.shape === shape),
    relistDelayMs: ({ shape }) => pace(shape),
    close,
  };
}

/** True if the collection showed one of the namespaces that have left the table. */
export function hasLostOneOf(removed: readonly string[], { group, resource, namespace }: Collection, before: Enforced): boolean {
  if (removed.length === 0) return false;
  const view = readViewOf(before.view(group, resource));
  return removed.some((name) => (namespace === "" || namespace === name) && view.ownershipOf(name) === "own");
}

function movedOf(moved: MovedNamespaces | undefined, noted: ReadonlySet<string> | undefined): Pick<ViewChange, "moved"> {
  if (moved === undefined || noted === undefined) return {};
  const gained = new Set([...moved.gained, ...noted]);
  return gained.size + moved.lost.length > MAX_MOVED ? {} : { moved: { gained: [...gained], lost: moved.lost } };
}

const FIRST_MS = 1_000;
/** The longest time that a client keeps an object that has left the subset. */
const LONGEST_MS = 60_000;
/** Clients can invent any number of shapes. */
const MAX_SHAPES = 1_000;

/**
 * The delay before a watch ends because of an object that may have left the subset by its labels. If the API server does not filter by
 * labels, every such event would cost a list. The client always lists again, but less often each time.
 */
export function createRelistPace(clock: Clock): (shape: string) => number {
  const known = new BoundedMap<string, { readonly dueMs: number; readonly intervalMs: number }>(MAX_SHAPES);
  return (shape) => {
    const now = clock.monotonicMs();
    const last = known.get(shape);
    // After an equally long rest the delay starts again.
    const isRested = last === undefined || now - last.dueMs >= 2 * last.intervalMs;
    const dueMs = isRested ? now : Math.max(now, last.dueMs + last.intervalMs);
    known.set(shape, { dueMs, intervalMs: isRested ? FIRST_MS : Math.min(LONGEST_MS, 2 * last.intervalMs) });
    return dueMs - now;
  };
}
