// A watch's body as this subset may see it. Invariants: bytes leave only as whole frames; no byte of a frame with an object
// that is neither the subset's nor shown on at that instant leaves; own frames leave untouched and in order; bookmarks and
// errors always pass.
//
// An event of an unknown namespace stalls the stream (upstream paused) until a snapshot says who owns it or `holdMs` is over:
// passing it by would let a later bookmark skip it. When a route change makes what the client has seen incomplete or too
// much, the watch ends with a 410 Expired event, upon which clients list again; or it is taken over, see renewing-watch.ts, which
// calls this. So does the isolate layer for watches that are not narrowed.
import type { Random, Timer } from "../../base/clock.ts";
import { encodeErrorFrame } from "../../kube/codec/status-bytes.ts";
import type { Encoding } from "../../kube/codec/types.ts";
import { createFrameSplitter, type FrameSplitter } from "../../kube/codec/watch-frames.ts";
import { createStatus } from "../../kube/status.ts";
import type { ByteSink, ByteSource, SourceControl } from "../http/byte-stream.ts";
import { asError } from "../http/tap.ts";
import type { Collection } from "../relist/resync.ts";
import type { MovedNamespaces, ViewChange } from "../relist/view-change.ts";
import type { Enforced } from "../session/session.ts";
import { type HeldBudget, HeldFrames } from "./held-frames.ts";
import { SliceWriter } from "./slice-writer.ts";
import { WatchJudge, type WatchJudgeDeps } from "./watch-judge.ts";
import type { WatchScope } from "./watch-scope.ts";

export interface WatchDeps extends WatchJudgeDeps {
  readonly random: Random;
  /** How long an event of an unknown namespace may stall a watch; default 5,000. */
  readonly watchHoldMs?: number;
  /** Watches that must end are spread over this time; default 1,000. */
  readonly resyncJitterMs?: number;
  /** Bound of what one stalled watch holds; default 4 MiB. */
  readonly maxHeldBytes?: number;
  /** Bound of what all of them hold together; default: none. */
  readonly heldBudget?: HeldBudget;
}

const EXPIRED = createStatus("Expired", "ctrlmesh: the namespaces of this subset have changed, list again");
const MAX_FRAME_BYTES = 16 * 1024 * 1024;

/**
 * Takes over from a watch whose collection has gained or lost namespaces: nothing more comes from it.
 * @param version the client has been shown everything up to it, and nothing later
 */
export type TakeOver = (version: bigint, moved: MovedNamespaces) => void;

/**
 * The source as seen by this subset.
 * @param takeOver default: the watch ends, and its client lists again
 */
export function watchStream(
  source: ByteSource,
  encoding: Encoding,
  scope: WatchScope,
  deps: WatchDeps,
  takeOver?: TakeOver,
): ByteSource {
  return {
    open: (sink) => new WatchStream(source, sink, encoding, scope, deps, takeOver),
    cancel: (error) => source.cancel(error),
  };
}

/** What ends a watch whose client has to list again. */
export function expiredFrame(encoding: Encoding): Uint8Array {
  return encodeErrorFrame(encoding, EXPIRED);
}

class WatchStream implements ByteSink, SourceControl {
  readonly #encoding: Encoding;
  readonly #collection: Collection;
  readonly #deps: WatchDeps;
  readonly #judge: WatchJudge;
  readonly #sink: ByteSink;
  readonly #out: SliceWriter;
  readonly #splitter: FrameSplitter;
  readonly #held: HeldFrames;
  readonly #upstream: SourceControl;
  readonly #unwatch: () => void;
  readonly #takeOver: TakeOver | undefined;
  #received = 0;
  #holdTimer: Timer | undefined;
  /** Ends the count of the namespaces that are waited for. */
  #release: () => void = () => undefined;
  #expiry: Timer | undefined;
  #relist: Timer | undefined;
  #sinkFull = false;
  #pausedSinceMs: number | undefined;
  #over = false;

  constructor(
    source: ByteSource,
    sink: ByteSink,
    encoding: Encoding,
    scope: WatchScope,
    deps: WatchDeps,
    takeOver: TakeOver | undefined,
  ) {
    this.#encoding = encoding;
    this.#takeOver = takeOver;
    this.#collection = scope.collection;
    this.#deps = deps;
    this.#judge = new WatchJudge(encoding, scope, deps);
    this.#sink = sink;
    this.#out = new SliceWriter(sink);
    this.#splitter = createFrameSplitter(encoding, { maxFrameBytes: MAX_FRAME_BYTES });
    this.#held = new HeldFrames(deps.maxHeldBytes ?? 4 * 1024 * 1024, deps.heldBudget);
    this.#unwatch = deps.resync.watching(scope.collection, (change, removed, before, born) =>
      this.#changed(change, removed, before, born),
    );
    this.#upstream = source.open(this);
    // The routes may have changed since this watch was decided.
    if (this.#judge.isStaleAtStart() || (scope.continues && deps.resync.mustListAgain(scope.collection))) this.#expireSoon();
  }

  // From upstream.

  write(chunk: Uint8Array): boolean {
    if (this.#over) return false;
    this.#received += chunk.length;
    this.#judge.received(chunk.length);
    try {
      this.#splitter.push(chunk, (frame) => this.#take(frame));
      this.#flush();
    } catch (error) {
      this.#fail(asError(error));
    }
    if (this.#wantsMore()) this.#endPause();
    else this.#pausedSinceMs ??= this.#deps.clock.monotonicMs();
    return this.#pausedSinceMs === undefined;
  }

  // What is held or incomplete is not lost: the client goes on from the last event that it saw.
  end(): void {
    if (this.#finish()) this.#sink.end();
  }

  // Never an error into the middle of a frame: the client sees a clean end at the last event, as with any closed watch.
  abort(): void {
    this.end();
  }

  // From the client.

  resume(): void {
    this.#sinkFull = false;
    this.#continue();
  }

  cancel(error: Error): void {
    if (this.#finish()) this.#upstream.cancel(error);
  }

  #take(frame: Uint8Array): void {
    if (this.#over) return;
    if (this.#held.isEmpty && this.#pass(frame)) return;
    this.#held.push(frame, this.#deps.clock.monotonicMs());
    if (this.#held.isOver) this.#drain();
    else this.#armHold();
  }

  // False if the frame has to wait.
  #pass(frame: Uint8Array): boolean {
    const fate = this.#judge.judge(frame);
    if (fate === "wait") this.#countHold(frame);
    if (fate === "relist") this.#expireInTurn();
    else if (fate instanceof Uint8Array && !this.#out.add(fate)) this.#sinkFull = true;
    return fate !== "wait";
  }

  // Holding.

  #countHold(frame: Uint8Array): void {
    const { session } = this.#deps;
    const releaseBefore = this.#release;
    const ends = this.#judge.unknownIn(frame).map((namespace) => session.beginHold(namespace));
    this.#release = () => {
      for (const end of ends) end();
    };
    releaseBefore(); // not sooner: what is waited for still is no news
  }

  #armHold(): void {
    const head = this.#held.head;
    if (head === undefined || this.#holdTimer !== undefined) return;
    const waitedMs = this.#deps.clock.monotonicMs() - head.sinceMs;
    const onTimeout = () => {
      this.#holdTimer = undefined;
      this.#drain();
      this.#continue();
    };
    this.#holdTimer = this.#deps.clock.after(Math.max(0, this.#holdMs - waitedMs), onTimeout);
  }

  // Lets go what can go: frames whose owner is known now, and those that have waited long enough.
  #drain(): void {
    try {
      for (let head = this.#held.head; head !== undefined && !this.#over; head = this.#held.head) {
        if (!this.#pass(head.frame) && !this.#giveUp(head.frame, head.sinceMs)) break;
        this.#held.shift();
      }
    } catch (error) {
      this.#fail(asError(error));
    }
    this.#holdTimer?.cancel();
    this.#holdTimer = undefined;
    if (this.#over) return;
    if (this.#held.isEmpty) this.#release();
    this.#flush();
    this.#armHold();
  }

  // True if the frame has waited long enough (or too much waits behind it) and is passed by.
  #giveUp(frame: Uint8Array, sinceMs: number): boolean {
    if (!this.#held.isOver && this.#deps.clock.monotonicMs() - sinceMs < this.#holdMs) return false;
    if (this.#judge.giveUp(frame)) this.#expireSoon();
    return this.#pass(frame);
  }

  get #holdMs(): number {
    return this.#deps.watchHoldMs ?? 5_000;
  }

  // Route changes.

  #changed(change: ViewChange, removed: readonly string[], before: Enforced, born: readonly string[]): void {
    if (this.#over) return;
    this.#judge.follow(removed, before);
    if (this.#isTakenOver(change)) return;
    if (change.gained || change.lost || this.#judge.isStale(born)) this.#expireSoon();
    this.#drain();
    this.#continue();
  }

  // What waits here comes again to whoever takes over: it is later than the version.
  #isTakenOver({ moved }: ViewChange): boolean {
    const { version } = this.#judge;
    const isEnding = this.#expiry !== undefined || this.#relist !== undefined;
    if (this.#takeOver === undefined || moved === undefined || version === undefined) return false;
    if (isEnding || this.#mayOweLastEvents) return false;
    this.#finish();
    this.#upstream.cancel(new Error("watching: it goes on with other namespaces"));
    this.#takeOver(version, moved);
    return true;
  }

  #expireSoon(): void {
    const { clock, random, resyncJitterMs = 1_000 } = this.#deps;
    this.#expiry ??= clock.after(random() * resyncJitterMs, () => this.#expire());
  }

  // One event made what the client has doubtful. Where many do, each client lists again ever more rarely.
  #expireInTurn(): void {
    const { clock, random, resync, resyncJitterMs = 1_000 } = this.#deps;
    if (this.#expiry !== undefined || this.#relist !== undefined) return;
    const delayMs = resync.relistDelayMs(this.#collection) + random() * resyncJitterMs;
    this.#relist = clock.after(delayMs, () => this.#expire());
  }

  #expire(): void {
    if (!this.#finish()) return;
    this.#sink.write(expiredFrame(this.#encoding));
    this.#sink.end();
    this.#upstream.cancel(new Error("watching: the routes have changed"));
  }

  // Flow and ends.

  get #mayOweLastEvents(): boolean {
    return this.#judge.mayOweLastEvents(!this.#wantsMore());
  }

  #wantsMore(): boolean {
    return !this.#over && !this.#sinkFull && this.#held.isEmpty;
  }

  #continue(): void {
    if (this.#pausedSinceMs === undefined || !this.#wantsMore()) return;
    this.#endPause();
    this.#upstream.resume();
  }

  #endPause(): void {
    if (this.#pausedSinceMs === undefined) return;
    this.#judge.goesOn(this.#deps.clock.monotonicMs() - this.#pausedSinceMs);
    this.#pausedSinceMs = undefined;
  }

  #flush(): void {
    if (!this.#out.flush()) this.#sinkFull = true;
  }

  #fail(error: Error): void {
    if (!this.#finish()) return;
    this.#upstream.cancel(error);
    this.#sink.abort(error);
  }

  // Frees everything. False if it was over already.
  #finish(): boolean {
    if (this.#over) return false;
    if (this.#mayOweLastEvents) this.#deps.resync.endedEarly(this.#collection);
    this.#over = true;
    this.#unwatch();
    this.#holdTimer?.cancel();
    this.#release();
    this.#expiry?.cancel();
    this.#relist?.cancel();
    this.#held.clear();
    this.#deps.metrics.filteredBytes.inc(Math.max(0, this.#received - this.#out.written));
    return true;
  }
}
