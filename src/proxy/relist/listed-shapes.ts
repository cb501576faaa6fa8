// The collections that this process has listed since the last route change that touched them, by the shape in which clients
// request them. Every entry was listed as a whole, under rules that still give the same result. A forgotten entry only costs its
// client one more list. Pure but for the clock; used by resync.ts.
import { createHash } from "node:crypto";
import type { Clock } from "../../base/clock.ts";
import type { Collection } from "./collection.ts";

export interface ListedShapes {
  /** Notes the start of a list. The answers to refused watches depend on the order of these starts. */
  begin(): number;
  /** The list with this start has been answered. */
  listed(collection: Collection, begunAt: number): void;
  /**
   * True if a watch may continue from a list.
   * @param version the resourceVersion that it continues from; undefined if this is no new request
   */
  mayContinue(collection: Collection, version: string | undefined): boolean;
  /** Pins the shape while a watch of it is open. Returns the function that unpins it, to be called once. */
  hold(collection: Collection): () => void;
  /** Forgets the shapes that a route change touches. @param touched receives whether a watch of the shape is open */
  forget(touched: (collection: Collection, isWatched: boolean) => boolean): void;
}

interface Listed {
  readonly collection: Collection;
  begunAt: number;
  /** The number of open watches. */
  held: number;
}

interface Refused {
  readonly at: number;
  readonly atMs: number;
  readonly version: string | undefined;
}

/** For each kind. An operator that lists by owner has many shapes; the watches of its informers keep theirs. */
const MAX_SHAPES = 1_000;
/** Longer selectors are stored as their hash. */
const MAX_KEY_CHARS = 200;
/** A watch that was let through without a list of its own. No other watch may rely on it. */
const NOT_LISTED = 0;
/** After this time an informer that was told to list again has done so. */
const NEVER_LISTS_MS = 60_000;

export function createListedShapes(clock: Clock, maxShapes = MAX_SHAPES): ListedShapes {
  // Oldest first, the order of a Map.
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
    const first = refusals.get(key) ?? { at: ++order, atMs: clock.monotonicMs(), version }; // a list counts from the first refusal on
    refusals.set(key, { ...first, version: first.version ?? version });
    const [oldest] = refusals.keys();
    if (refusals.size > maxShapes && oldest !== undefined) refusals.delete(oldest);
  };

  // The two exceptions: for a client that lists in another shape than it watches, and for one that never lists.
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
        // Makes it the newest again: its client returns within seconds.
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
