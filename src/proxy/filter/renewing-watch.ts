// A watch that goes on when its subset gains or loses namespaces, where its client would have to list everything again. The proxy puts
// together what a list would show: what the namespaces held at the version up to which the client has seen everything, as ADDED or
// DELETED events, and a new watch from that version on. Called by narrow.ts.
//
// Without this, client-go's reflector waits for up to a minute before it lists, without any event, and lists thousands of namespaces
// for one. Invariants: no event of a gained namespace leaves after another route change that touches the collection; of a lost one only
// what the client has been shown leaves; any failure ends the watch with a 410, as if this file did not exist.
import { MeshError } from "../../base/errors.ts";
import type { Encoding } from "../../kube/codec/types.ts";
import { intersectRanges, type ShardRange } from "../../route/shard-ranges.ts";
import type { ByteSink, ByteSource, SourceControl } from "../http/byte-stream.ts";
import { CallAbort, type CallSignal } from "../http/call-signal.ts";
import type { MovedNamespaces } from "../relist/view-change.ts";
import { expiredFrame } from "./expired.ts";
import { MovesMeanwhile } from "./moves-meanwhile.ts";
import type { SentRequest } from "./sent-request.ts";
import { RESYNC_JITTER_MS, type WatchDeps, watchStream } from "./watch-stream.ts";

/** What replaces a list by the client. */
export interface Renewed {
  /** What the gained and lost namespaces held at the version, as events. */
  readonly frames: readonly Uint8Array[];
  /** The API server's answer to the watch from the version on. */
  readonly source: ByteSource;
  readonly request: SentRequest;
}

/** Asks the API server. Rejects if one answer is missing, and has given up all other answers then. */
export type Renew = (version: bigint, moved: MovedNamespaces, signal: CallSignal) => Promise<Renewed>;

/** For all questions and the wait for a turn. The client gets no event meanwhile. */
const PATIENCE_MS = 5_000;
/** Moves in quick succession are asked for together. After so many, the client lists again. */
const MAX_TRIES = 5;
/** Bound of the events that were put together here and wait for the client. Nobody can pause them. One more set may come on top. */
const MAX_UNREAD_BYTES = 1024 * 1024;
const GIVEN_UP = new MeshError("ABORTED", "renewing a watch: given up");

/** The source as this subset may see it, for as long as the client stays. */
export function renewingWatch(
  source: ByteSource,
  encoding: Encoding,
  request: SentRequest,
  deps: WatchDeps,
  renew: Renew,
): ByteSource {
  return {
    open: (sink) => new RenewingWatch(source, sink, encoding, request, deps, renew),
    cancel: (error) => source.cancel(error),
  };
}

type State =
  | { readonly kind: "watching"; readonly stream: SourceControl }
  /** The stream has handed over; the API server is asked. */
  | { readonly kind: "renewing"; readonly asking: CallAbort }
  /** The client has to list again: the last frame leaves when the timer fires. */
  | { readonly kind: "expiring"; readonly timer: { cancel(): void } }
  | { readonly kind: "over" };

class RenewingWatch implements ByteSink, SourceControl {
  readonly #sink: ByteSink;
  readonly #encoding: Encoding;
  readonly #request: SentRequest;
  readonly #deps: WatchDeps;
  readonly #renew: Renew;
  #state: State = { kind: "over" };
  /** The ranges of hashes that every query so far has shown; undefined: all. Namespaces outside of them may be hidden from the client. */
  #shown: readonly ShardRange[] | undefined;
  #unreadBytes = 0;

  constructor(source: ByteSource, sink: ByteSink, encoding: Encoding, request: SentRequest, deps: WatchDeps, renew: Renew) {
    this.#sink = sink;
    this.#encoding = encoding;
    this.#request = request;
    this.#deps = deps;
    this.#renew = renew;
    this.#watch(source, request);
  }

  // From the stream.

  write(chunk: Uint8Array): boolean {
    return this.#sink.write(chunk);
  }

  // watching => over   the API server or a route change has ended the stream
  end(): void {
    this.#state = { kind: "over" };
    this.#sink.end();
  }

  abort(error: Error): void {
    this.#state = { kind: "over" };
    this.#sink.abort(error);
  }

  // From the client.

  resume(): void {
    this.#unreadBytes = 0;
    if (this.#state.kind === "watching") this.#state.stream.resume();
  }

  // watching, renewing, expiring => over   the client has gone
  cancel(error: Error): void {
    const before = this.#state;
    this.#state = { kind: "over" };
    switch (before.kind) {
      case "watching":
        before.stream.cancel(error);
        break;
      case "renewing":
        before.asking.abort(error);
        break;
      case "expiring":
        before.timer.cancel();
        break;
      case "over":
        break;
      default:
        before satisfies never;
    }
  }

  // renewing => watching   the API server has answered, and no route change came between
  #watch(source: ByteSource, request: SentRequest): void {
    const { only, shards } = request.serverFilter;
    const ranges = only === undefined ? shards?.ranges : [];
    if (ranges !== undefined) this.#shown = this.#shown === undefined ? ranges : intersectRanges(this.#shown, ranges);
    const takeOver = (version: bigint, moved: MovedNamespaces) => void this.#goOn(version, moved);
    this.#state = {
      kind: "watching",
      stream: watchStream(source, this.#encoding, request, this.#deps, takeOver).open(this),
    };
  }

  // watching => renewing   the collection has gained or lost a few namespaces
  async #goOn(version: bigint, moved: MovedNamespaces): Promise<void> {
    const { metrics, clock } = this.#deps;
    const asking = new CallAbort();
    this.#state = { kind: "renewing", asking };
    this.#noteHidden();
    const timer = clock.after(PATIENCE_MS, () => asking.abort(new MeshError("ABORTED", "renewing a watch: no answer in time")));
    const isRenewed = await this.#isRenewed(version, moved, asking).catch(() => false);
    timer.cancel();
    if (isRenewed) metrics.renewals.inc({ result: "renewed" });
    else if (!this.#isOver()) this.#expire();
  }

  /** True if the watch goes on. */
  async #isRenewed(version: bigint, first: MovedNamespaces, asking: CallSignal): Promise<boolean> {
    if (this.#unreadBytes > MAX_UNREAD_BYTES) return false;
    const moves = new MovesMeanwhile(this.#deps.resync, this.#request.collection, first, () => this.#noteHidden());
    try {
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        const moved = moves.take();
        if (moved === undefined) return false;
        const renewed = await this.#renew(version, moved, asking);
        if (this.#isOver() || moves.hasMore) renewed.source.cancel(GIVEN_UP);
        if (this.#isOver()) return false;
        if (moves.hasMore) continue;
        this.#send(renewed);
        return !this.#isOver();
      }
      return false;
    } finally {
      moves.end();
    }
  }

  #send({ frames, source, request }: Renewed): void {
    this.#deps.metrics.eventsOf(request.collection).forwarded.value += frames.length;
    // The client may go at any of them.
    for (const frame of frames) if (!this.#isOver() && !this.#sink.write(frame)) this.#unreadBytes += frame.length;
    if (this.#isOver()) source.cancel(GIVEN_UP);
    else this.#watch(source, request);
  }

  // renewing => expiring   something went wrong
  #expire(): void {
    const { metrics, clock, random } = this.#deps;
    metrics.renewals.inc({ result: "expired" });
    const timer = clock.after(random() * RESYNC_JITTER_MS, () => {
      this.#sink.write(expiredFrame(this.#encoding));
      this.end();
    });
    this.#state = { kind: "expiring", timer };
  }

  // A route change counts hidden namespaces as listed again. This client lists nothing, so it must still hear of them.
  #noteHidden(): void {
    if (this.#shown !== undefined) this.#deps.resync.leftOut.noteRanges(this.#request.collection, this.#shown);
  }

  #isOver(): boolean {
    return this.#state.kind === "over";
  }
}
