// Decides who must list again, and when. Invariant: a watch never goes on, and never starts, from a resourceVersion of a list
// that did not hold what is the subset's now (or held what no longer is). Called by the isolate layer and the watch streams.
//
// - A live watch is told of every route change at once, and ends itself with 410 Expired when it is touched.
// - A watch that goes on from a resourceVersion needs a list of its shape (resource, namespace, selectors) that began, in this
//   process, after the last route change that touched it, and was answered 200. Else it is answered 410 Expired. A process
//   knows nothing of what an earlier one left out, so a restart costs every informer one list. A watch that starts without a
//   resourceVersion or from "0", or that sends the initial events, is such a list itself, and needs none before it.
// - client-go lists and watches in one shape, and lists again upon a 410: it is refused once. A client that lists in another
//   shape than it watches must not be refused for ever: after one refusal a list of the same resource that began since, in the
//   same namespace or in all of them, will do. So will, after a minute in which nobody has listed, another resourceVersion
//   than the refused one: it comes from a client that never lists, and takes versions from objects.
//
// Where it is known in which few namespaces all lies that was gained or lost, a live watch goes on instead of ending: it asks itself
// for what they hold, or held (renewing-watch.ts). That is no list: once that watch is over, its client lists, since nobody knows how
// much of it it has read.
//
// All of this goes by what the pod may read (`readingOf`): "own" below is also what it goes on showing until it is restarted.
//
// Two informers of the same shape in one operator cannot be told apart: the list of one answers for both.
//
// What was not shown (or was, and is no more), and who remembers it, by how a namespace stands before and after a change. "Gone"
// was named by the table and is so no more; "new" has not been named yet. Objects of both are held, and left out in the end.
//
// | before, after  | mine                           | foreign, moving        | gone, new                                      |
// | -------------- | ------------------------------ | ---------------------- | ---------------------------------------------- |
// | mine           | -                              | lost: view-change      | gone: its last events are shown (watch-judge), |
// |                |                                |                        | who does not watch then lists again;           |
// |                |                                |                        | gone-namespaces remembers; new: lost, it was   |
// |                |                                |                        | shown as all unknown ones were: view-change    |
// | foreign,moving | gained: view-change            | -                      | gone-namespaces remembers                      |
// | gone           | gained if it was not mine then | lost if it was mine    | -                                              |
// |                | (gone-namespaces), or as new   | then: gone-namespaces  |                                                |
// | new            | gained if noted: left-out      | -, it was never shown  | -                                              |
//
// left-out has three kinds of notes: what was dropped here, by name; what a push-down to one namespace or to ranges hid, which
// may be anything; and what was excluded by name, of which only what goes and is born again matters. A list that is on its way
// counts as touched by the change (`listing`), what was listed before is forgotten (listed-shapes), and a live watch is told.
import type { Clock } from "../../base/clock.ts";
import { readViewOf } from "../../route/snapshot.ts";
import type { Enforced, GroupResource, Session } from "../session/session.ts";
import { createGoneNamespaces } from "./gone-namespaces.ts";
import { createLeftOut, type LeftOut } from "./left-out.ts";
import { createListedShapes } from "./listed-shapes.ts";
import { createRelistPace } from "./relist-pace.ts";
import { changeBetween, MAX_MOVED, type MovedNamespaces, type ViewChange } from "./view-change.ts";

/** A collection as one client asks for it. */
export interface Collection extends GroupResource {
  /** "" for all namespaces. */
  readonly namespace: string;
  /** Equal for the list and the watch of one informer: path and selectors as the client sent them. */
  readonly shape: string;
}

export type WatchListener = (change: ViewChange, removed: readonly string[], before: Enforced, born: readonly string[]) => void;

export interface Resync {
  readonly leftOut: LeftOut;
  /** Sends a list that starts at its beginning, or a watch that sends the whole state first; with 200 it counts as listed. */
  list<Answer extends { readonly status: number }>(collection: Collection, send: () => Promise<Answer>): Promise<Answer>;
  /**
   * True if a watch of the collection from an old resourceVersion could have missed something.
   * @param version that resourceVersion; undefined to ask again about a watch that has been let through
   */
  mustListAgain(collection: Collection, version?: string): boolean;
  /** Tells a live watch about every later snapshot. Returns the unsubscription. */
  watching(collection: Collection, listener: WatchListener): () => void;
  /** A watch has ended that may not have told its client all: whoever goes on from it has to list again. */
  endedEarly(collection: Collection): void;
  /** Milliseconds after which a watch may end that an event has made doubtful: longer each time. */
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
    // What a change means is asked here once and for all: nothing of the snapshot before is kept.
    const touches = (collection: Collection) => of(collection).gained || of(collection).lost;
    // Its last events are hidden from who watches later. A watch that is open shows them, or says that it could not (endedEarly).
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
    relistDelayMs: ({ shape }) => pace.next(shape),
    close,
  };
}

/** True if one of the namespaces that the table knows no more was shown by the collection. */
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
