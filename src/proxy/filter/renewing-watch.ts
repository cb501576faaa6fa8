// A watch that goes on when its subset gains or loses namespaces. It sends their objects as ADDED or DELETED
// events, as of the version up to which the client has seen everything, and then a new watch from there. So
// the client need not list again. Invariant: any failure ends the watch with a 410, so that the client does.
import { MeshError } from "../../base/errors.ts";
import type { Encoding } from "../../kube/codec/codec.ts";
import type { ListEvent } from "../../kube/codec/list-events.ts";
import { NEVER } from "../../kube/resource-version.ts";
import { type Collection, hasMoved, type Known } from "../../mesh/moves/known.ts";
import { readViewOf } from "../../mesh/ownership/snapshot.ts";
import type { ByteSink, ByteSource, SourceControl } from "../http/byte-stream.ts";
import { CallAbort, type CallSignal } from "../http/call-signal.ts";
import type { Reply } from "../http/handler.ts";
import { enforcedNow } from "../session/session.ts";
import { expiredFrame } from "./expired.ts";
import { type ReleaseOrder, rankOf } from "./release-order.ts";
import { attemptRenewal, notRenewed, type RenewalDeps } from "./renewal.ts";
import type { SentRequest } from "./sent-request.ts";
import { RELIST_JITTER_MS, type WatchDeps, watchStream } from "./watch-stream.ts";

/** A new watch, and the events that its client has to see before it. */
export interface Renewed {
  readonly names: readonly string[];
  /** The objects of the moved namespaces at the version. */
  readonly events: readonly ListEvent[];
  /** Sent last, so that the client continues from the version. Undefined if it takes no bookmarks. */
  readonly bookmark?: Uint8Array | undefined;
  readonly request: SentRequest;
  readonly reply: Reply;
  readonly source: ByteSource;
}

/** Asks the API server for the moved objects and the new watch. */
export type Renew = (known: Known, signal: CallSignal, rank?: number) => Promise<Renewed>;

export interface RenewingDeps extends WatchDeps, RenewalDeps {
  readonly releases: ReleaseOrder;
}

/** A renewal is tried again if a namespace moves meanwhile. After so many tries, the client lists again. */
const MAX_TRIES = 5;
/** A client with more unread bytes than this before a renewal has to list again. */
const MAX_UNREAD_BYTES = 1024 * 1024;
const GIVEN_UP = new MeshError("ABORTED", "renewing a watch: given up");

interface RenewableWatch {
  readonly first: Renewed;
  /** What the client knew before `first`. */
  readonly known: Known;
  readonly encoding: Encoding;
  readonly renew: Renew;
  readonly signal: CallSignal;
}

export function renewingWatch(watch: RenewableWatch, deps: RenewingDeps): ByteSource {
  return {
    open: (sink) => new RenewingWatch(sink, watch, deps),
    cancel: (error) => watch.first.source.cancel(error),
  };
}

type State =
  | { readonly kind: "watching"; readonly stream: SourceControl }
  /** The proxy asks the API server, or the first frames leave in the next microtask. */
  | { readonly kind: "renewing" }
  /** The client has to list again. The last frame leaves when the timer fires. */
  | { readonly kind: "expiring"; readonly timer: { cancel(): void } }
  | { readonly kind: "over" };

/** The states that may follow. */
const NEXT: Readonly<Record<State["kind"], readonly State["kind"][]>> = {
  watching: ["renewing", "over"],
  // "renewing" again: something has moved before the first frame left.
  renewing: ["renewing", "watching", "expiring", "over"],
  expiring: ["over"],
  over: [],
};

function step(before: State, next: State): State {
  return NEXT[before.kind].includes(next.kind) ? next : before;
}

class RenewingWatch implements ByteSink, SourceControl {
  readonly #sink: ByteSink;
  readonly #collection: Collection;
  readonly #encoding: Encoding;
  readonly #renew: Renew;
  readonly #deps: RenewingDeps;
  readonly #unlink: () => void;
  readonly #over = new CallAbort();
  #state: State = { kind: "renewing" };
  #unreadBytes = 0;

  constructor(sink: ByteSink, { first, known, encoding, renew, signal }: RenewableWatch, deps: RenewingDeps) {
    this.#sink = sink;
    this.#collection = first.request.collection;
    this.#encoding = encoding;
    this.#renew = renew;
    this.#deps = deps;
    // The first source ends with the call by itself, a later one does not.
    const onSignal = () => this.#endByCall(signal.reason);
    signal.addEventListener("abort", onSignal, { once: true });
    this.#unlink = () => signal.removeEventListener("abort", onSignal);
    if (first.events.length === 0) this.#watch(first);
    else queueMicrotask(() => this.#begin(first, known));
  }

  write(chunk: Uint8Array): boolean {
    return this.#sink.write(chunk);
  }

  // The API server or a route change has ended the stream.
  end(): void {
    this.#finish();
    this.#sink.end();
  }

  abort(error: Error): void {
    this.#finish();
    this.#sink.abort(error);
  }

  resume(): void {
    this.#unreadBytes = 0;
    if (this.#state.kind === "watching") this.#state.stream.resume();
  }

  cancel(error: Error): void {
    this.#finish(error);
  }

  // The proxy drains, or the watch's time is up. The end is clean, as when the API server ends a watch.
  #endByCall(reason: unknown): void {
    if (this.#state.kind === "over") return;
    this.#finish(reason instanceof Error ? reason : GIVEN_UP);
    this.#sink.end();
  }

  // renewing => watching   unless something has moved before the first frame left
  #begin(first: Renewed, known: Known): void {
    if (!this.#isOver() && !this.#hasMoved(first)) {
      this.#send(first);
      return;
    }
    first.source.cancel(GIVEN_UP);
    void this.#goOn(known);
  }

  // renewing => watching   the API server has answered
  #watch({ source, request }: Renewed): void {
    const watch = { encoding: this.#encoding, request, takeOver: (known: Known) => void this.#goOn(known) };
    const stream = watchStream(source, watch, this.#deps).open(this);
    if (!this.#become({ kind: "watching", stream })) stream.cancel(GIVEN_UP);
  }

  // watching => renewing   the collection has gained or lost a few namespaces
  async #goOn(known: Known): Promise<void> {
    if (!this.#become({ kind: "renewing" })) return;
    const isRenewed = await attemptRenewal(this.#over, (asking) => this.#askAndSend(known, asking), this.#deps);
    if (isRenewed === undefined) this.#expire();
  }

  // Repeats the question if something has moved while this waited for the watches that show the same moves.
  async #askAndSend(known: Known, asking: CallSignal): Promise<true> {
    if (this.#unreadBytes > MAX_UNREAD_BYTES) throw notRenewed("its client does not read");
    const rank = this.#rankOf(known);
    const ticket = this.#deps.releases.enter(rank);
    try {
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        const renewed = await this.#renew(known, asking, rank);
        await ticket.ready(bytesOf(renewed));
        if (!this.#isOver() && !this.#hasMoved(renewed)) {
          this.#send(renewed);
          return true;
        }
        renewed.source.cancel(GIVEN_UP);
        if (this.#isOver()) throw GIVEN_UP;
      }
    } finally {
      ticket.leave();
    }
    throw notRenewed("namespaces move too often");
  }

  // The place of this watch among those that show the same moves.
  #rankOf(known: Known): number {
    const { session, moves } = this.#deps;
    const { group, resource } = this.#collection;
    const due = moves.of(this.#collection).since(this.#collection, known);
    const view = readViewOf(enforcedNow(session).view(group, resource));
    const isGain = due.kind === "moved" && due.moved.some((name) => view.ownershipOf(name) === "own");
    return rankOf(this.#collection, isGain);
  }

  // No event of a later version than a move's mark may leave before the client is sent the move.
  #hasMoved({ names, request: { told } }: Renewed): boolean {
    const due = this.#deps.moves.of(this.#collection).since(this.#collection, { version: NEVER, told });
    return hasMoved(due) || (due.kind === "moved" && due.departed.some((name) => names.includes(name)));
  }

  #send(renewed: Renewed): void {
    const { events, source, request } = renewed;
    const { moves, metrics } = this.#deps;
    metrics.eventsOf(this.#collection).forwarded.value += events.length;
    const versions = events.map(({ version }) => version);
    moves.of(this.#collection).tell(request.version ?? NEVER, versions);
    // The client may disconnect during any of these writes.
    for (const frame of framesOf(renewed)) if (!this.#isOver() && !this.#sink.write(frame)) this.#unreadBytes += frame.length;
    if (this.#isOver()) source.cancel(GIVEN_UP);
    else this.#watch(renewed);
  }

  // renewing => expiring   the renewal has failed
  #expire(): void {
    const { clock, random } = this.#deps;
    const timer = clock.after(random() * RELIST_JITTER_MS, () => {
      this.#sink.write(expiredFrame(this.#encoding));
      this.end();
    });
    if (!this.#become({ kind: "expiring", timer })) timer.cancel();
  }

  // watching, renewing, expiring => over
  #finish(error: Error = GIVEN_UP): void {
    const before = this.#state;
    this.#become({ kind: "over" });
    this.#unlink();
    this.#over.abort(error);
    if (before.kind === "watching") before.stream.cancel(error);
    if (before.kind === "expiring") before.timer.cancel();
  }

  #become(next: State): boolean {
    this.#state = step(this.#state, next);
    return this.#state === next;
  }

  #isOver(): boolean {
    return this.#state.kind === "over";
  }
}

function framesOf({ events, bookmark }: Renewed): readonly Uint8Array[] {
  const frames = events.map(({ frame }) => frame);
  return bookmark === undefined ? frames : [...frames, bookmark];
}

function bytesOf(renewed: Renewed): number {
  return framesOf(renewed).reduce((sum, { length }) => sum + length, 0);
}
