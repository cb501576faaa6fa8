// The moves of one resource. Each has a mark: a version at or above all that clients were given before it
// (versions can be compared: https://kep.k8s.io/5504). Pure. Invariant: a mark may be too high, so that a
// client is sent what it knows, but never too low, so that it would miss objects.
import { isInClusterScope } from "../../kube/place.ts";
import { laterOf, NEVER, type Version, WITHOUT_END } from "../../kube/resource-version.ts";
import { type Collection, type Due, type Known, type OpenList, TOLD_NOTHING } from "./known.ts";
import { MAX_MOVED, MAX_NAMED, type Moves } from "./moves-between.ts";
import type { StoredResource } from "./stored-moves.ts";

/** Where a change stands among the versions of the resource, and among the changes of the routes. */
interface Mark {
  /** Clients were given no later version before the change. WITHOUT_END until that version is known. */
  readonly version: Version;
  /** Number of the snapshot that brought the change in this process; 0 for changes of an earlier one. */
  readonly sequence: number;
}

interface Move extends Mark {
  /** The subset owned the namespace, which has left the table: clients are owed its last events. */
  readonly isDeparted: boolean;
  /** The namespace is new: a client that was shown a later version has missed nothing of it. */
  readonly isBirth?: boolean;
}

const NOTHING: Due = { kind: "nothing" };
const EXPIRED: Due = { kind: "expired" };
/** The most departed namespaces that are stored. */
const MAX_STORED = 200;
const MAX_OUT_OF_ORDER = 10_000;

export class ResourceLog {
  readonly #left: ReadonlySet<string>;
  #position: number;
  /** The highest version that clients were given, as far as it is known. */
  #given: Version = NEVER;
  /** Clients may have been given later versions: by an earlier process, or in a form that was not read. */
  #gaveMore: boolean;
  /** Counts the changes after which a version that `learn` has requested earlier is of no use. */
  #changes = 0;
  /** To a client at or below this mark, objects of any namespace that was unknown may not have been shown. */
  #blindTo: Mark;
  /** A client at or below this mark has to list. */
  #horizon: Mark;
  /** The same for objects in namespaces. The mark rises when more moves than can be remembered by name. */
  #namespacesHorizon: Mark;
  /** The moves by namespace or bucket, the oldest first. */
  readonly #moves = new Map<string, Move>();
  /** Unknown namespaces of which something was left out. */
  readonly #leftOut = new Set<string>();
  /** The API server is asked to leave out unknown namespaces, so any of them may have been left out. */
  #hidesUnknown = false;
  /** The lists under way, each with the position at its request. */
  readonly #lists = new Set<{ readonly told: number }>();
  /** Versions of events that were sent after later ones: a client that continues from one may know more. */
  readonly #outOfOrder = new Set<Version>();

  /**
   * @param left all namespaces that have left the table; the caller adds those of a change after `take`
   * @param position number of the last change; a watch that was sent only earlier ones is expired
   * @param before what an earlier process has stored; undefined if there was none
   */
  constructor(left: ReadonlySet<string>, position: number, before?: StoredResource) {
    this.#left = left;
    this.#position = position;
    this.#gaveMore = before !== undefined;
    this.#blindTo = { version: this.#gaveMore ? WITHOUT_END : NEVER, sequence: 0 };
    this.#horizon = { version: before?.horizon ?? NEVER, sequence: position };
    this.#namespacesHorizon = { version: before?.namespacesHorizon ?? NEVER, sequence: 0 };
    for (const name of before?.departed ?? []) this.#moves.set(name, { version: WITHOUT_END, sequence: 0, isDeparted: true });
  }

  /** The number of changes so far. A client that is sent its moves now gets all up to this number. */
  get position(): number {
    return this.#position;
  }

  /** A client gets something of this version; undefined if the version could not be read. */
  give(version: Version | undefined): void {
    this.#given = laterOf(version ?? NEVER, this.#given);
    if (version !== undefined) return;
    this.#gaveMore = true;
    this.#changes++;
  }

  /** A client continues from a version. It does not count as given, since a client may send any number. */
  resume(version: Version): void {
    if (version > this.#given) this.#gaveMore = true;
  }

  /** A client is sent what it missed, up to `version`, by events of these versions. */
  tell(version: Version, events: readonly Version[]): void {
    this.give(version);
    for (const each of events) if (each < version) this.#outOfOrder.add(each);
    for (const oldest of this.#outOfOrder) {
      if (this.#outOfOrder.size <= MAX_OUT_OF_ORDER) break;
      this.#outOfOrder.delete(oldest);
      if (oldest > this.#horizon.version) this.#horizon = { version: oldest, sequence: this.#position };
    }
  }

  get #bound(): Version {
    return this.#gaveMore ? WITHOUT_END : this.#given;
  }

  /** Objects of an unknown namespace were left out. */
  leaveOut(namespace: string): void {
    if (this.#leftOut.size >= MAX_NAMED) {
      this.#leftOut.clear();
      this.#blindTo = { version: WITHOUT_END, sequence: 0 };
    }
    this.#leftOut.add(namespace);
  }

  /** True if nobody waits for the unknown namespace's owner: objects were left out, or it left the table. */
  hasLeftOut(namespace: string): boolean {
    return this.#left.has(namespace) || this.#leftOut.has(namespace);
  }

  hideUnknown(): void {
    this.#hidesUnknown = true;
  }

  /** The names in `left` were forgotten: each namespace that appears may be one of them. */
  forgetNames(): void {
    this.#blindTo = { version: this.#bound, sequence: this.#position };
  }

  /** A list is sent. It may lack what moves before its version is known, which then raises the marks. */
  beginList(): OpenList {
    const list = { told: this.#position };
    this.#lists.add(list);
    const end = () => this.#lists.delete(list);
    const answered = (version: Version | undefined) => {
      if (!end()) return;
      this.give(version);
      const at = version ?? WITHOUT_END;
      this.#raise(at, (mark) => mark.sequence > list.told && mark.version < at);
    };
    return { answered, end };
  }

  #raise(version: Version, concerns: (mark: Mark) => boolean): void {
    const raised = <T extends Mark>(mark: T): T => (concerns(mark) ? { ...mark, version } : mark);
    this.#blindTo = raised(this.#blindTo);
    this.#horizon = raised(this.#horizon);
    this.#namespacesHorizon = raised(this.#namespacesHorizon);
    for (const [name, move] of this.#moves) this.#moves.set(name, raised(move));
  }

  take({ isEverything, moved, born, departed }: Moves, sequence: number): void {
    const version = this.#bound;
    this.#position = sequence;
    this.#changes++;
    if (isEverything) this.#horizon = { version, sequence };
    if (moved === undefined) this.#namespacesHorizon = { version, sequence };
    for (const name of moved ?? []) {
      this.#leftOut.delete(name);
      this.#put(name, { version, sequence, isDeparted: false });
    }
    for (const [name, isOwn] of born) this.#takeBorn(name, isOwn, sequence);
    // Its last events may be later than what was given so far, but not than what is learned from now on.
    for (const name of departed) this.#put(name, { version: WITHOUT_END, sequence, isDeparted: true });
  }

  // A namespace that appears in the table. It may be one that was deleted before, whose last events the subset may still be owed:
  //   the subset's before, and now: not a move, if nothing was left out between
  //   the subset's before, another's now: a move. A watch is sent DELETED as of what it has seen, so it keeps nothing of the first
  //   not the subset's before, or not known: a birth, and a move only for clients of whom something was left out
  #takeBorn(name: string, isOwn: boolean, sequence: number): void {
    const before = this.#moves.get(name);
    const wasOwn = before?.isDeparted === true;
    const isLeftOut = this.#leftOut.delete(name) || this.#hidesUnknown || (this.#left.has(name) && !wasOwn);
    const version = isLeftOut || (wasOwn && !isOwn) ? this.#bound : laterOf(this.#blindTo.version, before?.version ?? NEVER);
    // What was the subset's and is again, with nothing left out between, has not moved.
    if (wasOwn && isOwn && !isLeftOut && this.#blindTo.version === NEVER)
      this.#put(name, { ...before, version: this.#bound, isDeparted: false });
    else if (wasOwn || (isOwn && (isLeftOut || version > NEVER)))
      this.#put(name, { version, sequence, isDeparted: false, isBirth: !isLeftOut && isOwn });
  }

  // Adds the move as the newest. If the oldest is forgotten, clients that it was not sent to list again.
  #put(name: string, move: Move): void {
    this.#moves.delete(name);
    this.#moves.set(name, move);
    for (const [oldest, { version }] of this.#moves) {
      if (this.#moves.size <= MAX_NAMED) break;
      if (isInClusterScope(oldest)) continue; // these are few
      this.#moves.delete(oldest);
      if (version > this.#namespacesHorizon.version) this.#namespacesHorizon = { version, sequence: move.sequence };
    }
  }

  since({ namespace, scope = "unknown" }: Collection, known: Known): Due {
    const { version, told, departed: owed = known } = known;
    if (isDue(this.#horizon, known)) return EXPIRED;
    if (told === TOLD_NOTHING && this.#outOfOrder.has(version)) return EXPIRED;
    if (scope !== "cluster" && isDue(this.#namespacesHorizon, known)) return EXPIRED;
    const [moved, departed]: [string[], string[]] = [[], []];
    for (const [name, move] of this.#moves) {
      if (scope !== "unknown" && isInClusterScope(name) !== (scope === "cluster")) continue;
      if ((namespace !== "" && name !== namespace) || (move.isBirth && move.version < version)) continue;
      if (isDue(move, move.isDeparted ? owed : known)) (move.isDeparted ? departed : moved).push(name);
    }
    if (moved.length > MAX_MOVED) return EXPIRED;
    return moved.length + departed.length === 0 ? NOTHING : { kind: "moved", moved, departed };
  }

  /** The subset owned the namespace, which has left the table: clients are owed its DELETED events. */
  isDeparted(namespace: string): boolean {
    return this.#moves.get(namespace)?.isDeparted === true;
  }

  /**
   * Undefined if all versions are known. Otherwise takes the API server's newest version, to be asked for
   * now: it is later than all that was given. Until then unknown versions are later than all others.
   */
  get learn(): ((version: Version) => void) | undefined {
    const isUnknown = ({ version }: Mark) => version === WITHOUT_END;
    if (![this.#horizon, this.#namespacesHorizon, ...this.#moves.values()].some(isUnknown)) return undefined;
    const changes = this.#changes;
    return (version) => {
      if (this.#changes !== changes) return; // the version may be too low
      this.give(version);
      this.#gaveMore = false;
      this.#raise(version, isUnknown);
    };
  }

  /** For the next process, which does not know `#outOfOrder`: clients at or below the horizons list. */
  get stored(): StoredResource {
    // A list under way may still raise versions.
    const inDoubt = Math.min(...[...this.#lists].map(({ told }) => told));
    const versionOf = (mark: Mark) => (mark.sequence > inDoubt ? WITHOUT_END : mark.version);
    // Nobody was sent a departure without a version, so it is stored by name. Horizons cover all other moves.
    const isUntold = (move: Move) => move.isDeparted && move.version === WITHOUT_END;
    const told = [...this.#moves.values()].filter((move) => !isUntold(move));
    const buckets = [...this.#moves].flatMap(([name, move]) => (isInClusterScope(name) ? [move] : []));
    return {
      horizon: [this.#horizon, ...buckets].map(versionOf).reduce(laterOf),
      namespacesHorizon: [this.#namespacesHorizon, ...told].map(versionOf).reduce(laterOf),
      departed: [...this.#moves].flatMap(([name, move]) => (isUntold(move) ? [name] : [])).slice(-MAX_STORED),
    };
  }
}

function isDue(mark: Mark, { version, told }: Known): boolean {
  return told === TOLD_NOTHING ? mark.version >= version : mark.sequence > told;
}
