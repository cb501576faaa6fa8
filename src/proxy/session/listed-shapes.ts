// Which collections have been listed in this process and not been touched by a route change since, by the shape in which
// clients ask for them. Invariant: what is in here was listed whole under rules that still say the same about it; whatever
// is forgotten only costs its client one more list. Pure but for the clock; used by `resync.ts`.
import { createHash } from "node:crypto";
import type { Clock } from "../../base/clock.ts";
import { parseResourceVersion } from "../../kube/resource-version.ts";
import type { ShardRange } from "../../route/shard-ranges.ts";
import type { Collection } from "./resync.ts";

export interface ListedShapes {
  /** Notes the beginning of a list. The order of beginnings is what the answers to refused watches go by. */
  begin(): number;
  /** A list that began then has been answered. */
  listed(collection: Collection, begunAt: number): void;
  /**
   * A watch of the shape sends what was gained and lost. Its client may go on from something newer; not so if another client of the shape
   * was away at the change, which may have something newer as well and has not been told.
   */
  renewed(collection: Collection, renewal: Renewal): void;
  /** What the last list of the shape, and all that came since, has shown of namespaces that nobody had heard of: see Renewal. */
  shownSince(collection: Collection): readonly ShardRange[] | undefined;
  /**
   * True if a watch may go on from a list.
   * @param version the resourceVersion that it goes on from; undefined if this is no new request
   */
  mayContinue(collection: Collection, version: string | undefined): boolean;
  /** Pins the shape while a watch of it is open. Returns the end of that, to be called once. */
  hold(collection: Collection): () => void;
  /** A list of the shape was touched by a route change: who watches from it may have missed something, whatever its version. */
  touch(collection: Collection): void;
  /** Forgets what a route change touches. @param touched is told whether a watch of the shape is open */
  forget(touched: (collection: Collection, isWatched: boolean) => boolean): void;
}

/** What a watch has sent in its client's place. */
export interface Renewal {
  /** What was sent was as at this version: a client that has read no further may have read only a part of it. */
  readonly version: bigint;
  /**
   * Of namespaces that nobody had heard of, only those that hash into these ranges were shown by all that the client was sent; undefined:
   * all were.
   */
  readonly shown: readonly ShardRange[] | undefined;
}

interface Listed {
  readonly collection: Collection;
  begunAt: number;
  /** The last one since the shape was listed. */
  renewal: Renewal | undefined;
  /** Open watches. */
  held: number;
  /** Clients that have listed, or whose watch has ended, and may watch from there yet. */
  away: number;
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
  // Shapes with clients that were away when a route change touched them, until the next list.
  const missed = new Set<string>();
  let order = 0;

  const miss = (key: string) => {
    missed.add(key);
    const [oldest] = missed;
    if (missed.size > maxShapes && oldest !== undefined) missed.delete(oldest);
  };

  const put = (key: string, collection: Collection, begunAt: number, renewal?: Renewal): Listed => {
    const entry = shapes.get(key) ?? { collection, begunAt, renewal, held: 0, away: 0 };
    entry.begunAt = Math.max(entry.begunAt, begunAt);
    entry.renewal = renewal;
    shapes.delete(key);
    shapes.set(key, entry);
    refusals.delete(key);
    for (const [oldest, { held }] of shapes) {
      if (shapes.size <= maxShapes) break;
      if (held === 0) shapes.delete(oldest);
    }
    return entry;
  };

  const refuse = (key: string, version: string | undefined) => {
    const first = refusals.get(key) ?? { at: ++order, atMs: clock.monotonicMs(), version }; // a list counts from the first on
    refusals.set(key, { ...first, version: first.version ?? version });
    const [oldest] = refusals.keys();
    if (refusals.size > maxShapes && oldest !== undefined) refusals.delete(oldest);
  };

  // The two ways of a client that lists in another shape than it watches, or never.
  const isExcused = ({ group, resource, namespace }: Collection, refused: Refused, version: string | undefined) => {
    for (const { collection: other, begunAt, renewal } of shapes.values()) {
      const isSame = other.group === group && other.resource === resource;
      if (isSame && renewal === undefined && begunAt > refused.at && (other.namespace === "" || other.namespace === namespace))
        return true;
    }
    const isNewVersion = version !== undefined && refused.version !== undefined && version !== refused.version;
    return isNewVersion && clock.monotonicMs() - refused.atMs >= NEVER_LISTS_MS;
  };

  return {
    begin: () => ++order,
    listed(collection, begunAt) {
      const key = keyOf(collection);
      missed.delete(key);
      put(key, collection, begunAt).away++;
    },
    renewed(collection, renewal) {
      const key = keyOf(collection);
      if (missed.has(key)) return;
      // Of several watches of the shape each client may have read no more than the furthest of them has.
      const before = shapes.get(key)?.renewal?.version ?? 0n;
      put(key, collection, ++order, before > renewal.version ? { ...renewal, version: before } : renewal);
    },
    shownSince: (collection) => shapes.get(keyOf(collection))?.renewal?.shown,
    mayContinue(collection, version) {
      const key = keyOf(collection);
      const entry = shapes.get(key);
      if (entry !== undefined && isAfter(version, entry.renewal)) return true;
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
      entry.away = Math.max(0, entry.away - 1);
      return () => {
        entry.held--;
        entry.away++;
        // Newest again: its client comes back within seconds.
        if (shapes.get(key) === entry) put(key, collection, entry.begunAt, entry.renewal);
      };
    },
    touch: (collection) => miss(keyOf(collection)),
    forget(touched) {
      for (const [key, { collection, held, away }] of shapes) {
        if (!touched(collection, held > 0)) continue;
        shapes.delete(key);
        if (away > 0) miss(key);
      }
    },
  };
}

// A live watch (no version) has been let through already.
function isAfter(version: string | undefined, renewal: Renewal | undefined): boolean {
  if (renewal === undefined || version === undefined) return true;
  return (parseResourceVersion(version) ?? 0n) > renewal.version;
}

function keyOf({ shape }: Collection): string {
  return shape.length > MAX_KEY_CHARS ? createHash("sha256").update(shape).digest("base64") : shape;
}
