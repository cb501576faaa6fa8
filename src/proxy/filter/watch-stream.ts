// A watch's body as this subset may see it. Invariants: only whole frames leave, in order, and no object that
// the subset may not read at that instant. An event of an unknown namespace stalls the stream, since a later
// bookmark would skip it. After a move the watch ends with a 410, or renewing-watch.ts takes over.
import type { Random, Timer } from "../../base/clock.ts";
import type { MemoryHold } from "../../base/fair-memory.ts";
import { createFrameSplitter, type Encoding, type FrameSplitter } from "../../kube/codec/codec.ts";
import type { Known } from "../../mesh/moves/known.ts";
import type { ByteSink, ByteSource, SourceControl } from "../http/byte-stream.ts";
import { cutForMemory } from "../http/byte-stream.ts";
import { asError } from "../http/tap.ts";
import { expiredFrame } from "./expired.ts";
import { type HeldBudget, HoldQueue } from "./hold-queue.ts";
import type { SentRequest } from "./sent-request.ts";
import { SliceWriter } from "./slice-writer.ts";
import { WatchFilter, type WatchFilterDeps } from "./watch-filter.ts";
import { type WatchMove, WatchMoves } from "./watch-moves.ts";

export interface WatchDeps extends WatchFilterDeps {
  readonly random: Random;
  /** The bytes that all stalled watches hold, with their bound. */
  readonly heldBudget: HeldBudget;
  /** Bound of what one stalled watch holds; default 4 MiB. */
  readonly maxHeldBytes?: number;
}

/** Watches that must end are spread over this time. */
export const RELIST_JITTER_MS = 1_000;
/** A "relist" event does not end a younger watch: such events may be frequent, and lists are expensive. */
const MIN_RELIST_AGE_MS = 30_000;

interface Watch {
  readonly encoding: Encoding;
  readonly request: SentRequest;
  /** Takes over when the collection has gained or lost namespaces. Without it the client lists again. */
  readonly takeOver?: (known: Known) => void;
}

export function watchStream(source: ByteSource, watch: Watch, deps: WatchDeps): ByteSource {
  return {
    open: (sink) => new WatchStream(source, sink, watch, deps),
    cancel: (error) => source.cancel(error),
  };
}

class WatchStream implements ByteSink, SourceControl {
  readonly #watch: Watch;
  readonly #deps: WatchDeps;
  readonly #filter: WatchFilter;
  readonly #moves: WatchMoves;
  readonly #sink: ByteSink;
  readonly #out: SliceWriter;
  readonly #splitter: FrameSplitter;
  readonly #held: HoldQueue;
  readonly #memory: MemoryHold | undefined;
  readonly #upstream: SourceControl;
  readonly #unwatch: () => void;
  readonly #openedMs: number;
  /** `expiring`: no event leaves any more, and the client has to list again when a timer fires. */
  #state: "open" | "expiring" | "over" = "open";
  readonly #timers: Timer[] = [];
  #received = 0;
  #sinkFull = false;
  #isPaused = false;
  /** The moves since the watch was sent have been handled. */
  #hasStarted = false;

  constructor(source: ByteSource, sink: ByteSink, watch: Watch, deps: WatchDeps) {
    const { clock, session, maxHeldBytes = 4 * 1024 * 1024 } = deps;
    const { encoding, request } = watch;
    this.#watch = watch;
    this.#deps = deps;
    this.#filter = new WatchFilter(encoding, request, deps);
    this.#moves = new WatchMoves(request, deps.moves);
    this.#sink = sink;
    this.#out = new SliceWriter(sink);
    this.#splitter = createFrameSplitter(encoding);
    this.#openedMs = clock.monotonicMs();
    this.#held = new HoldQueue(clock, maxHeldBytes, deps.heldBudget, {
      pass: (frame) => this.#pass(frame),
      beginHold: (frame) => this.#beginHold(frame),
      giveUp: (frame) => this.#filter.giveUp(frame),
      onTimeout: () => this.#goOn(),
    });
    this.#memory = source.share?.hold(() => this.#fail(cutForMemory()));
    this.#unwatch = session.onChange(() => this.#changed());
    // In a microtask, since the caller of `open` is not ready yet; at the latest with the first bytes.
    queueMicrotask(() => this.#attempt(() => this.#start()));
    this.#upstream = source.open(this);
  }

  write(chunk: Uint8Array): boolean {
    this.#attempt(() => this.#start());
    if (this.#isOver) return false;
    this.#received += chunk.length;
    this.#filter.received(chunk.length);
    this.#attempt(() => this.#splitter.push(chunk, (frame) => this.#take(frame)));
    this.#countHeld();
    this.#isPaused = !this.#wantsMore();
    return !this.#isPaused;
  }

  // No held or incomplete frame is lost: the client continues from the last event that it saw.
  end(): void {
    if (this.#finish()) this.#sink.end();
  }

  // The client sees a clean end after the last event, as with any closed watch.
  abort(): void {
    this.end();
  }

  resume(): void {
    this.#sinkFull = false;
    this.#resumeUpstream();
  }

  cancel(error: Error): void {
    if (this.#finish()) this.#upstream.cancel(error);
  }

  #take(frame: Uint8Array): void {
    if (this.#state === "open" && this.#held.take(frame)) this.#drain();
  }

  #pass(frame: Uint8Array): boolean {
    if (this.#isOver) return true;
    const outcome = this.#filter.filter(frame);
    if (outcome === "relist") this.#expireWhenOld();
    else if (outcome instanceof Uint8Array && !this.#out.add(outcome)) this.#sinkFull = true;
    return outcome !== "wait";
  }

  #beginHold(frame: Uint8Array): () => void {
    const { session } = this.#deps;
    const ends = this.#filter.unknownIn(frame).map((namespace) => session.beginHold(namespace));
    return () => {
      for (const end of ends) end();
    };
  }

  // Runs a function that may write frames, and flushes them. An unreadable frame breaks the connection.
  #attempt(run: () => void): void {
    try {
      run();
      if (!this.#isOver && !this.#out.flush()) this.#sinkFull = true;
    } catch (error) {
      this.#fail(asError(error));
    }
  }

  #changed(): void {
    if (this.#isOver) return;
    this.#follow(this.#moves.since(this.#filter.version));
    this.#goOn();
  }

  #start(): void {
    if (this.#hasStarted || this.#isOver) return;
    this.#hasStarted = true;
    this.#follow(this.#moves.atStart(this.#filter.version));
  }

  #follow(move: WatchMove): void {
    if (move.kind === "expired" || (move.kind === "moved" && !this.#isTakenOver(move.known))) this.#expireSoon();
  }

  // The held frames are later than the version, so the next watch sends them again.
  #isTakenOver(known: Known): boolean {
    if (this.#watch.takeOver === undefined || this.#filter.version === undefined || this.#isEnding) return false;
    this.#finish();
    this.#upstream.cancel(new Error("watching: it goes on with other namespaces"));
    this.#watch.takeOver(known);
    return true;
  }

  // No event leaves any more: a client that continued from one would miss what has moved.
  #expireSoon(): void {
    if (this.#state !== "open") return;
    this.#state = "expiring";
    this.#held.clear();
    this.#expireAfter(0);
  }

  #expireWhenOld(): void {
    if (!this.#isEnding) this.#expireAfter(Math.max(0, this.#openedMs + MIN_RELIST_AGE_MS - this.#deps.clock.monotonicMs()));
  }

  #expireAfter(delayMs: number): void {
    const { clock, random } = this.#deps;
    this.#timers.push(clock.after(delayMs + random() * RELIST_JITTER_MS, () => this.#expire()));
  }

  get #isEnding(): boolean {
    return this.#state !== "open" || this.#timers.length > 0;
  }

  get #isOver(): boolean {
    return this.#state === "over";
  }

  #expire(): void {
    if (!this.#finish()) return;
    this.#sink.write(expiredFrame(this.#watch.encoding));
    this.#sink.end();
    this.#upstream.cancel(new Error("watching: the routes have changed"));
  }

  #wantsMore(): boolean {
    return !this.#isOver && !this.#sinkFull && this.#held.isEmpty;
  }

  #drain(): void {
    this.#attempt(() => this.#held.drain());
    this.#countHeld();
  }

  #countHeld(): void {
    if (!this.#isOver) this.#memory?.set(this.#splitter.heldBytes + this.#held.heldBytes);
  }

  #goOn(): void {
    this.#drain();
    this.#resumeUpstream();
  }

  #resumeUpstream(): void {
    if (!this.#isPaused || !this.#wantsMore()) return;
    this.#isPaused = false;
    this.#upstream.resume();
  }

  #fail(error: Error): void {
    if (!this.#finish()) return;
    this.#upstream.cancel(error);
    this.#sink.abort(error);
  }

  // False if the stream was over already.
  #finish(): boolean {
    if (this.#isOver) return false;
    this.#state = "over";
    for (const timer of this.#timers) timer.cancel();
    this.#unwatch();
    this.#held.clear();
    this.#memory?.end();
    this.#deps.metrics.filteredBytes.inc(Math.max(0, this.#received - this.#out.written));
    return true;
  }
}
