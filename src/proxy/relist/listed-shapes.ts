// Which collections have been listed in this process and not been touched by a route change since, by the shape in which
// clients ask for them. Invariant: what is in here was listed whole under rules that still say the same about it; whatever
// is forgotten only costs its client one more list. Pure but for the clock; used by `resync.ts`.
import { createHash } from "node:crypto";
import type { Clock } from "../../base/clock.ts";
import type { Collection } from "./resync.ts";

export interface ListedShapes {
  /** Notes the beginning of a list. The order of beginnings is what the answers to refused watches go by. */
  begin(): number;
  /** A list that began then has been answered. */
  listed(collection: Collection, begunAt: number): void;
  /**
   * True if a watch may go on from a list.
   * @param version the resourceVersion that it goes on from; undefined if this is no new request
   */
  mayContinue(collection: Collection, version: string | undefined): boolean;
  /** Pins the shape while a watch of it is open. Returns the end of that, to be called once. */
  hold(collection: Collection): () => void;
  /** Forgets what a route change touches. @param touched is told whether a watch of the shape is open */
  forget(touched: (collection: Collection, isWatched: boolean) => boolean): void;
}

interface Listed {
  readonly collection: Collection;
  begunAt: number;
  /** Open watches. */
  held: number;
}

interface Refused {
  readonly at: number;
  readonly atMs: number;
  readonly version: string | undefined;
}

/** Of each kind. An operator that lists by owner has many shapes; its informers' are held by their watches meanwhile. */
const MAX_SHAPES = 1_000;
/** Longer selectors are remembered by their hash. */
const MAX_KEY_CHARS = 200;
/** Let through without a list of its own, which then excuses nobody else. */
const NOT_LISTED = 0;
/** An informer that was told to list again has done so by then. */
const NEVER_LISTS_MS = 60_000;

export function createListedShapes(clock: Clock, maxShapes = MAX_SHAPES): ListedShapes {
  // Oldest first, as Map keeps them.
  const shapes = new Map<string, Listed>();
  const refusals = new Map<string, Refused>();
  let order = 0;

  const put = (key: string, collection: Collection, begunAt: number) => {
    const entry = shapes.get(key) ?? { collection, begunAt, held: 0 };
    entry.begunAt = Math.max(entry.begunAt, begunAt);
    shapes.delete(key);
    shapes.set(key, entry);
    refusals.delete(key);
    if (shapes.size <= maxShapes) return;
    for (const [oldest, { held }] of shapes) {
      if (held > 0) continue;
      shapes.delete(oldest);
      return;
    }
  };

  const refuse = (key: string, version: string | undefined) => {
    const first = refusals.get(key) ?? { at: ++order, atMs: clock.monotonicMs(), version }; // a list counts from the first on
    refusals.set(key, { ...first, version: first.version ?? version });
    const [oldest] = refusals.keys();
    if (refusals.size > maxShapes && oldest !== undefined) refusals.delete(oldest);
  };

  // The two ways of a client that lists in another shape than it watches, or never.
  const isExcused = ({ group, resource, namespace }: Collection, refused: Refused, version: string | undefined) => {
    for (const { collection: other, begunAt } of shapes.values()) {
      const isSame = other.group === group && other.resource === resource;
      if (isSame && begunAt > refused.at && (other.namespace === "" || other.namespace === namespace)) return true;
    }
    const isNewVersion = version !== undefined && refused.version !== undefined && version !== refused.version;
    return isNewVersion && clock.monotonicMs() - refused.atMs >= NEVER_LISTS_MS;
  };

  return {
    begin: () => ++order,
    listed: (collection, begunAt) => put(keyOf(collection), collection, begunAt),
    mayContinue(collection, version) {
      const key = keyOf(collection);
      if (shapes.has(key)) return true;
      const refused = refusals.get(key);
      if (refused !== undefined && isExcused(collection, refused, version)) {
        put(key, collection, NOT_LISTED);
        return true;
      }
      refuse(key, version);
      return false;
    },
    hold(collection) {
      const key = keyOf(collection);
      const entry = shapes.get(key);
      if (entry === undefined) return () => undefined;
      entry.held++;
      return () => {
        entry.held--;
        // Newest again: its client comes back within seconds.
        if (shapes.get(key) === entry) put(key, collection, entry.begunAt);
      };
    },
    forget(touched) {
      for (const [key, { collection, held }] of shapes) if (touched(collection, held > 0)) shapes.delete(key);
    },
  };
}

function keyOf({ shape }: Collection): string {
  return shape.length > MAX_KEY_CHARS ? createHash("sha256").update(shape).digest("base64") : shape;
}
