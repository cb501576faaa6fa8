// A watch's body as this subset may see it. Invariants: bytes leave only as whole frames; no byte of a frame with an object
// that is not the subset's at that instant leaves; own frames leave untouched and in order; bookmarks and errors always pass.
//
// An event of an unknown namespace stalls the stream (upstream paused) until a snapshot says who owns it or `holdMs` is over:
// passing it by would let a later bookmark skip it. When a route change makes what the client has seen incomplete or too
// much, the watch ends with a 410 Expired event, upon which clients list again. Called by the isolate layer.
import type { Clock, Random, Timer } from "../../base/clock.ts";
import { encodeErrorFrame } from "../../kube/codec/status-bytes.ts";
import type { Encoding, ItemMeta } from "../../kube/codec/types.ts";
import { createFrameSplitter, type FrameSplitter, filterTableFrame, readFrame } from "../../kube/codec/watch-frames.ts";
import { createStatus } from "../../kube/status.ts";
import { governingNamespace, type ResourceView } from "../../route/snapshot.ts";
import type { ByteSink, ByteSource, SourceControl } from "../pipeline/byte-stream.ts";
import type { Resync } from "../session/resync.ts";
import type { Enforced, Session } from "../session/session.ts";
import type { ViewChange } from "../session/view-change.ts";
import { HeldFrames } from "./held-frames.ts";
import { judgeEvent } from "./judge-event.ts";
import { asError } from "./list-stream.ts";
import { SliceWriter } from "./slice-writer.ts";
import { type EventDecision, resourceLabel, type StreamMetrics } from "./stream-metrics.ts";
import { isAllMine, isPushdownStale, type WatchScope } from "./watch-scope.ts";

export interface WatchDeps {
  readonly session: Session;
  readonly resync: Resync;
  readonly clock: Clock;
  readonly random: Random;
  readonly metrics: StreamMetrics;
  /** How long an event of an unknown namespace may stall a watch; default 5,000. */
  readonly watchHoldMs?: number;
  /** Watches that must end are spread over this time; default 1,000. */
  readonly resyncJitterMs?: number;
  /** Bound of what one stalled watch holds; default 4 MiB. */
  readonly maxHeldBytes?: number;
}

const EXPIRED = createStatus("Expired", "ctrlmesh: the namespaces of this subset have changed, list again");
const MAX_FRAME_BYTES = 16 * 1024 * 1024;

/** The source as seen by this subset. */
export function watchStream(source: ByteSource, encoding: Encoding, scope: WatchScope, deps: WatchDeps): ByteSource {
  return {
    open: (sink) => new WatchStream(source, sink, encoding, scope, deps),
    cancel: (error) => source.cancel(error),
  };
}

class WatchStream implements ByteSink, SourceControl {
  readonly #encoding: Encoding;
  readonly #scope: WatchScope;
  readonly #deps: WatchDeps;
  readonly #sink: ByteSink;
  readonly #out: SliceWriter;
  readonly #splitter: FrameSplitter;
  readonly #held: HeldFrames;
  readonly #upstream: SourceControl;
  readonly #unwatch: () => void;
  readonly #label: string;
  /** Namespaces that were ours when they vanished from the table: their last events are still the client's. */
  readonly #departed = new Set<string>();
  /** No event has been dealt with yet. */
  #isFirst = true;
  #received = 0;
  #holdTimer: Timer | undefined;
  #expiry: Timer | undefined;
  #sinkFull = false;
  #paused = false;
  #over = false;

  constructor(source: ByteSource, sink: ByteSink, encoding: Encoding, scope: WatchScope, deps: WatchDeps) {
    this.#encoding = encoding;
    this.#scope = scope;
    this.#deps = deps;
    this.#sink = sink;
    this.#out = new SliceWriter(sink);
    this.#splitter = createFrameSplitter(encoding, { maxFrameBytes: MAX_FRAME_BYTES });
    this.#held = new HeldFrames(deps.maxHeldBytes ?? 4 * 1024 * 1024);
    this.#label = resourceLabel(scope.collection);
    this.#unwatch = deps.resync.watching(scope.collection, (change, removed, before) => this.#changed(change, removed, before));
    this.#upstream = source.open(this);
    // The routes may have changed since this watch was decided.
    const { continues, collection, pushed } = scope;
    if (isPushdownStale(this.#view(), pushed) || (continues && deps.resync.mustListAgain(collection))) this.#expireSoon();
  }

  // From upstream.

  write(chunk: Uint8Array): boolean {
    if (this.#over) return false;
    this.#received += chunk.length;
    try {
      this.#splitter.push(chunk, (frame) => this.#take(frame));
      this.#flush();
    } catch (error) {
      this.#fail(asError(error));
    }
    this.#paused = !this.#wantsMore();
    return !this.#paused;
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
    const view = this.#view();
    if (isAllMine(view, this.#scope.collection)) return this.#emit(frame);
    const event = readFrame(this.#encoding, frame);
    if (event.type === "BOOKMARK" || event.type === "ERROR") return this.#emit(frame);
    const { leftOut } = this.#deps.resync;
    const { collection } = this.#scope;
    const givenUp = (namespace: string) => !this.#departed.has(namespace) && leftOut.has(collection, namespace);
    const judgement = judgeEvent(view, event, givenUp, this.#isFirst);
    const { verdict } = judgement;
    switch (verdict.kind) {
      case "show":
        return this.#emit(frame);
      case "show-part":
        this.#leaveOut(judgement.leftOut);
        return this.#emit(filterTableFrame(frame, (meta) => this.#isMine(view, meta)));
      case "drop":
        this.#isFirst = false;
        this.#leaveOut(judgement.leftOut);
        this.#count(judgement.leftOut.length > 0 ? "left-out" : "dropped");
        return true;
      case "hold":
        // The last of a deleted namespace: without it the client would keep its objects for ever.
        if (event.type === "DELETED" && verdict.namespaces.every((namespace) => this.#departed.has(namespace)))
          return this.#emit(frame);
        this.#count("held");
        return false;
      default:
        return verdict satisfies never;
    }
  }

  #isMine(view: ResourceView, meta: ItemMeta): boolean {
    return view.standing(governingNamespace(view.group, view.resource, meta)) === "mine";
  }

  #emit(frame: Uint8Array): true {
    this.#isFirst = false;
    this.#count("forwarded");
    if (!this.#out.add(frame)) this.#sinkFull = true;
    return true;
  }

  #leaveOut(namespaces: readonly string[]): void {
    for (const namespace of namespaces) this.#deps.resync.leftOut.note(this.#scope.collection, namespace);
  }

  #count(decision: EventDecision): void {
    this.#deps.metrics.watchEvents.inc({ resource: this.#label, decision });
  }

  // Holding.

  #armHold(): void {
    const head = this.#held.head;
    if (head === undefined || this.#holdTimer !== undefined) return;
    const waitedMs = this.#deps.clock.monotonicMs() - head.sinceMs;
    this.#holdTimer = this.#deps.clock.after(Math.max(0, this.#holdMs - waitedMs), () => {
      this.#holdTimer = undefined;
      this.#drain();
      this.#continue();
    });
  }

  // Lets go what can go: frames whose owner is known now, and those that have waited long enough.
  #drain(): void {
    for (let head = this.#held.head; head !== undefined && !this.#over; head = this.#held.head) {
      const passed = this.#tryPass(head.frame);
      if (!passed && !this.#giveUp(head.frame, head.sinceMs)) break;
      this.#held.shift();
    }
    if (!this.#over) this.#flush();
    this.#holdTimer?.cancel();
    this.#holdTimer = undefined;
    if (!this.#over) this.#armHold();
  }

  #tryPass(frame: Uint8Array): boolean {
    try {
      return this.#pass(frame);
    } catch (error) {
      this.#fail(asError(error));
      return true;
    }
  }

  // True if the frame has waited long enough (or too much waits behind it) and is passed by.
  #giveUp(frame: Uint8Array, sinceMs: number): boolean {
    const { clock } = this.#deps;
    if (!this.#held.isOver && clock.monotonicMs() - sinceMs < this.#holdMs) return false;
    const view = this.#view();
    for (const object of readFrame(this.#encoding, frame).objects) {
      const namespace = governingNamespace(view.group, view.resource, object);
      if (view.standing(namespace) !== "unknown") continue;
      this.#leaveOut([namespace]);
      // The client knows objects of this namespace: only a new list tells it what became of them.
      if (this.#departed.delete(namespace)) this.#expireSoon();
    }
    return this.#tryPass(frame);
  }

  get #holdMs(): number {
    return this.#deps.watchHoldMs ?? 5_000;
  }

  // Route changes.

  #changed({ gained, lost }: ViewChange, removed: readonly string[], before: Enforced): void {
    if (this.#over) return;
    const { group, resource } = this.#scope.collection;
    const view = this.#view();
    const old = before.view(group, resource);
    for (const namespace of removed) if (old.standing(namespace) === "mine") this.#departed.add(namespace);
    for (const namespace of this.#departed) if (view.standing(namespace) !== "unknown") this.#departed.delete(namespace);
    if (gained || lost || isPushdownStale(view, this.#scope.pushed)) this.#expireSoon();
    this.#drain();
    this.#continue();
  }

  #expireSoon(): void {
    const { clock, random, resyncJitterMs = 1_000 } = this.#deps;
    this.#expiry ??= clock.after(random() * resyncJitterMs, () => this.#expire());
  }

  #expire(): void {
    if (!this.#finish()) return;
    this.#sink.write(encodeErrorFrame(this.#encoding, EXPIRED));
    this.#sink.end();
    this.#upstream.cancel(new Error("watching: the routes have changed"));
  }

  // Flow and ends.

  #view(): ResourceView {
    const { session } = this.#deps;
    const { group, resource } = this.#scope.collection;
    const { current } = session;
    if (current === undefined) throw new Error("watching: there is no snapshot");
    return current.view(group, resource);
  }

  #wantsMore(): boolean {
    return !this.#over && !this.#sinkFull && this.#held.isEmpty;
  }

  #continue(): void {
    if (!this.#paused || !this.#wantsMore()) return;
    this.#paused = false;
    this.#upstream.resume();
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
    this.#over = true;
    this.#unwatch();
    this.#holdTimer?.cancel();
    this.#expiry?.cancel();
    this.#held.clear();
    this.#deps.metrics.filteredBytes.inc(Math.max(0, this.#received - this.#out.written));
    return true;
  }
}
