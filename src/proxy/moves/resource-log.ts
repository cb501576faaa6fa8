// What has moved of one resource, by resourceVersion: which namespaces a client has to be told of if it knows the resource as of a version.
// Invariant: a version in it may be too high, but is never too low. Too high, a client is told what it knows; too low, it would miss
// objects. Pure; called by the move log.
//
// A move is marked with a version at or above everything that clients were given of the resource before it. Whoever continues from a later
// version began after the move. Versions of one resource can be compared: https://kep.k8s.io/5504.

import { laterOf, NEVER, type Version, WITHOUT_END } from "../../kube/resource-version.ts";
import type { StoredResource } from "../session/stored-moves.ts";
import type { Collection } from "./collection.ts";
import { type Mark, TOLD_NOTHING } from "./mark.ts";
import { MAX_MOVED, MAX_NAMED, type Moves } from "./moves-between.ts";

interface Move extends Mark {
  /** The namespace was the subset's and has left the table: its last events are still to be shown. */
  readonly isDeparted: boolean;
  /** The namespace is new. Only a client that was shown nothing later than the version may have missed something of it. */
  readonly isBirth?: boolean;
}

/** A list between its request and its answer. */
export interface ListUnderWay {
  readonly sequence: number;
}

/** What a client knows of its collection. */
export interface Known {
  /** The version as of which it has been shown everything. NEVER: only the moves since `told` count. */
  readonly version: Version;
  /** It was told of all moves up to this number; TOLD_NOTHING if it continues an earlier watch or list. */
  readonly told: number;
  /** From where on it may still miss the last events of departed namespaces. Default: from `version` and `told` on. */
  readonly departed?: Pick<Known, "version" | "told"> | undefined;
  /** The version up to which a live watch has shown everything. Default: as `version`. */
  readonly shown?: Version;
}

/** What a client has not been told. */
export type Due =
  | { readonly kind: "nothing" }
  | { readonly kind: "moved"; readonly moved: readonly string[]; readonly departed: readonly string[] }
  /** Too much, or it is not known any more: the client has to list. */
  | { readonly kind: "expired" };

/** True if a live watch cannot go on as it is. It still gets the last events of departed namespaces. */
export function hasMoved(due: Due): boolean {
  return due.kind === "expired" || (due.kind === "moved" && due.moved.length > 0);
}

const NOTHING: Due = { kind: "nothing" };
const EXPIRED: Due = { kind: "expired" };

/** Bound of the named moves, and of the namespaces that were left out while they were unknown. */
const MAX_NAMES = MAX_NAMED;
/** The most moves that are stored by name. */
const MAX_STORED = 200;
const MAX_OUT_OF_ORDER = 10_000;

export class ResourceLog {
  /** The highest version that clients were given, as far as it is known. */
  #given: Version = NEVER;
  /** Clients may have been given later versions: by an earlier process, or in a form that was not read. */
  #gaveMore: boolean;
  /** Counts the changes after which a version that `learn` has requested earlier is of no use. */
  #changes = 0;
  /** To a client at or below this mark, objects of any namespace that was unknown may not have been shown. */
  #blindTo: Mark;
  /** At or below it, a version is expired. */
  #horizon: Mark;
  /** The same for collections with objects in namespaces. It rises when more namespaces have moved than can be remembered by name. */
  #namespacesHorizon: Mark;
  /** The oldest first. */
  readonly #moves = new Map<string, Move>();
  /** Unknown namespaces of which something was left out. */
  readonly #leftOut = new Set<string>();
  /** The API server is asked to leave out unknown namespaces, so the proxy does not see which ones it left out. */
  #hidesUnknown = false;
  readonly #lists = new Set<ListUnderWay>();
  /** Versions of events that were sent after later versions. A client that continues from one of them may know more than that version. */
  readonly #outOfOrder = new Set<Version>();

  /**
   * @param before what the process before has left; undefined if there was none
   * @param sequence number of the last change. Moves up to it were not recorded here, so a watch that was told only of earlier ones is expired
   */
  constructor(before?: StoredResource, sequence = 0) {
    this.#gaveMore = before !== undefined;
    this.#blindTo = { version: this.#gaveMore ? WITHOUT_END : NEVER, sequence: 0 };
    this.#horizon = { version: before?.horizon ?? NEVER, sequence };
    // A client that was told of an earlier move may continue from one of the told events, and know more (`#outOfOrder` is not stored).
    const versions = before?.moves.map(({ version }) => version) ?? [];
    this.#namespacesHorizon = { version: [before?.namespacesHorizon ?? NEVER, ...versions].reduce(laterOf), sequence: 0 };
    for (const { name, version, isDeparted } of before?.moves ?? [])
      if (isDeparted) this.#moves.set(name, { version, sequence: 0, isDeparted });
  }

  /** A client gets something of this version; undefined if the version could not be read. */
  give(version: Version | undefined): void {
    if (version === undefined) {
      this.#gaveMore = true;
      this.#changes++;
    } else if (version > this.#given) this.#given = version;
  }

  /** A client continues from a version. One above all that were given here is not noted as given, as a client may send any number. */
  resume(version: Version): void {
    if (version > this.#given) this.#gaveMore = true;
  }

  /** A client is told what it missed, up to `version`, by events of these versions. */
  tell(version: Version, events: readonly Version[], sequence: number): void {
    this.give(version);
    for (const each of events) if (each < version) this.#outOfOrder.add(each);
    for (const oldest of this.#outOfOrder) {
      if (this.#outOfOrder.size <= MAX_OUT_OF_ORDER) break;
      this.#outOfOrder.delete(oldest);
      if (oldest > this.#namespacesHorizon.version) this.#namespacesHorizon = { version: oldest, sequence };
    }
  }

  /** At or above everything that clients were given. */
  get #bound(): Version {
    return this.#gaveMore ? WITHOUT_END : this.#given;
  }

  leaveOut(namespace: string): void {
    if (this.#leftOut.size >= MAX_NAMES) {
      this.#leftOut.clear();
      this.#blindTo = { version: WITHOUT_END, sequence: 0 };
    }
    this.#leftOut.add(namespace);
  }

  /** True if something of the namespace was left out, so that nothing of it is waited for any more. */
  hasLeftOut(namespace: string): boolean {
    return this.#leftOut.has(namespace);
  }

  /** A query lets the API server leave out unknown namespaces. */
  hideUnknown(): void {
    this.#hidesUnknown = true;
  }

  /** The names of namespaces that left the table were forgotten. A namespace that appears may have one of these names. */
  forgetNames(sequence: number): void {
    this.#blindTo = { version: this.#bound, sequence };
  }

  beginList(sequence: number): ListUnderWay {
    const list = { sequence };
    this.#lists.add(list);
    return list;
  }

  /** The list's version is known: what has moved since its request may be missing in it. */
  answered(list: ListUnderWay, version: Version | undefined): void {
    this.#lists.delete(list);
    this.give(version);
    const at = version ?? WITHOUT_END;
    const raised = <T extends Mark>(mark: T): T =>
      mark.sequence > list.sequence && mark.version < at ? { ...mark, version: at } : mark;
    this.#blindTo = raised(this.#blindTo);
    this.#horizon = raised(this.#horizon);
    this.#namespacesHorizon = raised(this.#namespacesHorizon);
    for (const [name, move] of this.#moves) this.#moves.set(name, raised(move));
  }

  /** The list has failed. */
  endList(list: ListUnderWay): void {
    this.#lists.delete(list);
  }

  /** @param hasLeft true for a namespace that left the table earlier */
  take({ isEverything, moved, born, departed }: Moves, sequence: number, hasLeft: (namespace: string) => boolean): void {
    const version = this.#bound;
    this.#changes++;
    if (isEverything) this.#horizon = { version, sequence };
    if (moved === undefined) this.#namespacesHorizon = { version, sequence };
    for (const name of moved ?? []) {
      this.#leftOut.delete(name);
      this.#put(name, { version, sequence, isDeparted: false });
    }
    for (const [name, isOwn] of born) this.#takeBorn(name, isOwn, sequence, hasLeft(name));
    for (const name of departed) this.#put(name, { version, sequence, isDeparted: true });
  }

  #takeBorn(name: string, isOwn: boolean, sequence: number, hasLeft: boolean): void {
    const before = this.#moves.get(name);
    const wasOwn = before?.isDeparted === true;
    const isLeftOut = this.#leftOut.delete(name) || this.#hidesUnknown || (hasLeft && !wasOwn);
    const version = isLeftOut || (wasOwn && !isOwn) ? this.#bound : laterOf(this.#blindTo.version, before?.version ?? NEVER);
    // What was the subset's and is again, with nothing left out between, has not moved.
    if (wasOwn && isOwn && !isLeftOut && this.#blindTo.version === NEVER) this.#put(name, { ...before, isDeparted: false });
    else if (wasOwn || (isOwn && version > NEVER))
      this.#put(name, { version, sequence, isDeparted: false, isBirth: !isLeftOut && isOwn });
  }

  // Adds the move as the newest. If the oldest is forgotten, clients that had to be told of it have to list again.
  #put(name: string, move: Move): void {
    this.#moves.delete(name);
    this.#moves.set(name, move);
    for (const [oldest, { version }] of this.#moves) {
      if (this.#moves.size <= MAX_NAMES) break;
      this.#moves.delete(oldest);
      if (version > this.#namespacesHorizon.version) this.#namespacesHorizon = { version, sequence: move.sequence };
    }
  }

  /** What a client of the collection has to be told. */
  since({ namespace, isOutsideNamespaces }: Collection, known: Known): Due {
    const { version, told, departed: owed = known, shown = version } = known;
    if (isDue(this.#horizon, version, told)) return EXPIRED;
    if (isOutsideNamespaces) return NOTHING;
    if (told === TOLD_NOTHING && this.#outOfOrder.has(version)) return EXPIRED;
    if (isDue(this.#namespacesHorizon, version, told)) return EXPIRED;
    const [moved, departed]: [string[], string[]] = [[], []];
    const names = namespace === "" ? this.#moves : only(this.#moves, namespace);
    for (const [name, move] of names) {
      if (move.isBirth && move.version < shown) continue;
      if (move.isDeparted ? isDue(move, owed.version, owed.told) : isDue(move, version, told))
        (move.isDeparted ? departed : moved).push(name);
    }
    if (moved.length > MAX_MOVED) return EXPIRED;
    return moved.length + departed.length === 0 ? NOTHING : { kind: "moved", moved, departed };
  }

  isDeparted(namespace: string): boolean {
    return this.#moves.get(namespace)?.isDeparted === true;
  }

  /**
   * Undefined if all versions are known. Otherwise the API server has to be asked for its version now, which is later than all that was
   * given before, and the returned function takes it. Until then the versions that are not known count as later than all others.
   */
  get learn(): ((version: Version) => void) | undefined {
    if (![this.#horizon, this.#namespacesHorizon, ...this.#moves.values()].some(({ version }) => version === WITHOUT_END))
      return undefined;
    const changes = this.#changes;
    return (version) => {
      // Something has changed since the version was requested, so it may be too low.
      if (this.#changes !== changes) return;
      const known = <T extends Mark>(mark: T): T => (mark.version === WITHOUT_END ? { ...mark, version } : mark);
      this.give(version);
      this.#gaveMore = false;
      this.#blindTo = known(this.#blindTo);
      this.#horizon = known(this.#horizon);
      this.#namespacesHorizon = known(this.#namespacesHorizon);
      for (const [name, move] of this.#moves) this.#moves.set(name, known(move));
    };
  }

  /** For the next process. Versions that a list under way may raise are not known yet. */
  get stored(): StoredResource {
    const inDoubt = Math.min(...[...this.#lists].map(({ sequence }) => sequence));
    const versionOf = (mark: Mark) => (mark.sequence > inDoubt ? WITHOUT_END : mark.version);
    const all = [...this.#moves];
    const forgotten = all.slice(0, -MAX_STORED).map(([, move]) => versionOf(move));
    return {
      horizon: versionOf(this.#horizon),
      namespacesHorizon: [versionOf(this.#namespacesHorizon), ...forgotten].reduce(laterOf),
      moves: all.slice(-MAX_STORED).map(([name, move]) => ({ name, version: versionOf(move), isDeparted: move.isDeparted })),
    };
  }
}

function isDue(mark: Mark, version: Version, told: number): boolean {
  return mark.version >= version && mark.sequence > told;
}

function only(moves: ReadonlyMap<string, Move>, name: string): readonly (readonly [string, Move])[] {
  const move = moves.get(name);
  return move === undefined ? [] : [[name, move]];
}
