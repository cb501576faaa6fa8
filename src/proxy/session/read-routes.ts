// The routes that lists and watches follow: those of the session, but a place that the pod has just written to
// is lost only after the events of these writes. A client that reads its own writes (controller-runtime's
// EnableReadYourWritesConsistency) waits until its watch has shown the version of its last write. Invariants:
// whoever reads follows the same routes, one snapshot or another, never parts of two; and they are behind for
// no longer than `MAX_BEHIND_MS`.
import type { Clock, Timer } from "../../base/clock.ts";
import type { GroupResource } from "../../kube/types.ts";
import { type Ownership, readViewOf } from "../../route/snapshot.ts";
import { createChangeListeners } from "./change-listeners.ts";
import { LOST_MOVES, type MovesMemory } from "./memory.ts";
import type { Enforced, Session } from "./session.ts";

export interface ReadRoutes extends Session {
  /** The session's memory. While reads are behind, the next process has to believe that all moves are lost. */
  readonly movesMemory: Pick<MovesMemory, "before" | "keep">;
}

/** An API server sends the event of a write some milliseconds after its answer, and later under load. */
export const EVENT_MS = 250;
/** The bound for writes that are answered late. */
export const MAX_BEHIND_MS = 1_500;

interface Write {
  readonly place: string;
  readonly target: GroupResource;
}

interface Behind {
  /** The routes that reads still follow. */
  readonly before: Enforced;
  readonly now: Enforced;
  readonly timer: Timer;
}

export function createReadRoutes(
  session: Session,
  memory: MovesMemory,
  clock: Clock,
  onListenerError: (error: unknown) => void = () => undefined,
): ReadRoutes {
  const listeners = createChangeListeners(onListenerError);
  /** The writes whose events may still come. */
  const writes = new Set<Write>();
  let behind: Behind | undefined;

  const losesWritten = (before: Enforced, now: Enforced) =>
    [...writes].some((write) => ownershipOf(write, before) === "own" && hasOtherOwner(write, now));
  const catchUp = () => {
    if (behind === undefined) return;
    const { before, now, timer } = behind;
    behind = undefined;
    timer.cancel();
    listeners.notify(now, before);
    memory.changed();
  };

  session.onChange((now, before) => {
    if (behind !== undefined) behind = { ...behind, now };
    else if (before === undefined || !losesWritten(before, now)) listeners.notify(now, before);
    else behind = { before, now, timer: clock.after(MAX_BEHIND_MS, catchUp) };
  });

  return {
    get current() {
      const { current } = session;
      return current && (behind?.before ?? current);
    },
    onChange: listeners.add,
    beginHold: session.beginHold,
    beginWrite(place, target, reach) {
      const end = session.beginWrite(place, target, reach);
      if (target === undefined) return end;
      const write = { place, target };
      writes.add(write);
      let isAnswered = false;
      return () => {
        end();
        if (isAnswered) return;
        isAnswered = true;
        clock.after(EVENT_MS, () => {
          writes.delete(write);
          if (behind !== undefined && !losesWritten(behind.before, behind.now)) catchUp();
        });
      };
    },
    movesMemory: {
      get before() {
        return memory.before;
      },
      keep: (read) => memory.keep(() => (behind === undefined ? read() : LOST_MOVES)),
    },
  };
}

function ownershipOf({ place, target: { group, resource } }: Write, { view }: Enforced): Ownership {
  return readViewOf(view(group, resource)).ownershipOf(place);
}

// A namespace that has left the table was deleted, and its last events pass in any case.
function hasOtherOwner(write: Write, routes: Enforced): boolean {
  return !["own", "unknown"].includes(ownershipOf(write, routes));
}
