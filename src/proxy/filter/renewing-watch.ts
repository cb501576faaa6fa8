// A watch that goes on when its subset gains or loses namespaces, where its client would have to list everything again: client-go waits
// up to a minute before it does (its reflector's backoff), without any event meanwhile, and thousands of namespaces would be listed
// for one. What a list would have told is put together here: what the namespaces held at the very version that the client has seen
// everything up to, as ADDED or DELETED events, and a new watch from that version on. Invariants: of what is gained nothing leaves if a
// route change has touched the collection meanwhile, and of what is lost nothing but what the client has been shown; whatever goes
// wrong ends the watch as if this were not here. Called by the isolate layer for narrowed watches.
import { MeshError } from "../../base/errors.ts";
import type { Encoding } from "../../kube/codec/types.ts";
import { intersectRanges, type ShardRange } from "../../route/shard-ranges.ts";
import type { ByteSink, ByteSource, SourceControl } from "../http/byte-stream.ts";
import { CallAbort, type CallSignal } from "../http/call-signal.ts";
import { hasLostOneOf, type WatchListener } from "../relist/resync.ts";
import { MAX_MOVED, type MovedNamespaces } from "../relist/view-change.ts";
import type { WatchScope } from "./watch-scope.ts";
import { expiredFrame, type WatchDeps, watchStream } from "./watch-stream.ts";

/** What takes the place of a list by the client. */
export interface Renewed {
  /** What the namespaces held at the version, as events: those that came, and those that went. */
  readonly frames: readonly Uint8Array[];
  /** The API server's answer to the watch from the version on. */
  readonly source: ByteSource;
  readonly scope: WatchScope;
}

/** Asks the API server. Rejects if it does not give what is asked for; then everything that was asked for has been given up. */
export type Renew = (version: bigint, moved: MovedNamespaces, signal: CallSignal) => Promise<Renewed>;

/** For all questions and the wait for a turn; the client is told nothing meanwhile. */
const PATIENCE_MS = 5_000;
/** Moves that follow each other closely are asked for together; where they do without end, the client lists again. */
const MAX_TRIES = 5;
/** Of what was put together here and the client has not read yet, which nobody can pause. One more may come on top. */
const MAX_UNREAD_BYTES = 1024 * 1024;
const GIVEN_UP = new MeshError("ABORTED", "renewing a watch: given up");

/** The source as seen by this subset, for as long as the client stays. */
export function renewingWatch(
  source: ByteSource,
  encoding: Encoding,
  scope: WatchScope,
  deps: WatchDeps,
  renew: Renew,
): ByteSource {
  return {
    open: (sink) => new RenewingWatch(source, sink, encoding, scope, deps, renew),
    cancel: (error) => source.cancel(error),
  };
}

class RenewingWatch implements ByteSink, SourceControl {
  readonly #sink: ByteSink;
  readonly #encoding: Encoding;
  readonly #scope: WatchScope;
  readonly #deps: WatchDeps;
  readonly #renew: Renew;
  /** Undefined while it is renewed. */
  #stream: SourceControl | undefined;
  #asking: CallAbort | undefined;
  /**
   * Of namespaces that nobody had heard of, only those that hash into these ranges were shown by all that the client was sent: the rest
   * was asked to be left out. Undefined: all were.
   */
  #shown: readonly ShardRange[] | undefined;
  #unreadBytes = 0;
  #over = false;

  constructor(source: ByteSource, sink: ByteSink, encoding: Encoding, scope: WatchScope, deps: WatchDeps, renew: Renew) {
    this.#sink = sink;
    this.#encoding = encoding;
    this.#scope = scope;
    this.#deps = deps;
    this.#renew = renew;
    this.#open(source, scope);
  }

  #open(source: ByteSource, scope: WatchScope): void {
    const ranges = scope.pushed.only === undefined ? scope.pushed.ranges : [];
    if (ranges !== undefined) this.#shown = this.#shown === undefined ? ranges : intersectRanges(this.#shown, ranges);
    const takeOver = (version: bigint, moved: MovedNamespaces) => {
      this.#stream = undefined;
      this.#noteHidden();
      void this.#goOn(version, moved);
    };
    this.#stream = watchStream(source, this.#encoding, scope, this.#deps, takeOver).open(this);
  }

  // What was hidden counts as listed again by whatever a change touches. This client lists nothing, and is still to be told of it.
  #noteHidden(): void {
    if (this.#shown !== undefined) this.#deps.resync.leftOut.noteRanges(this.#scope.collection, this.#shown);
  }

  // From the stream in force.

  write(chunk: Uint8Array): boolean {
    return this.#sink.write(chunk);
  }

  end(): void {
    this.#over = true;
    this.#sink.end();
  }

  abort(error: Error): void {
    this.#over = true;
    this.#sink.abort(error);
  }

  // From the client.

  resume(): void {
    this.#unreadBytes = 0;
    this.#stream?.resume();
  }

  cancel(error: Error): void {
    this.#over = true;
    this.#asking?.abort(error);
    this.#stream?.cancel(error);
  }

  async #goOn(version: bigint, moved: MovedNamespaces): Promise<void> {
    const { metrics, clock, random, resyncJitterMs = 1_000 } = this.#deps;
    if (await this.#isRenewed(version, moved)) {
      metrics.renewals.inc({ result: "renewed" });
      return;
    }
    if (this.#over) return;
    metrics.renewals.inc({ result: "expired" });
    const timer = clock.after(random() * resyncJitterMs, () => {
      if (this.#over) return;
      this.#sink.write(expiredFrame(this.#encoding));
      this.end();
    });
    this.#stream = { resume: () => undefined, cancel: () => timer.cancel() };
  }

  /** True if it goes on. */
  async #isRenewed(version: bigint, first: MovedNamespaces): Promise<boolean> {
    const { resync } = this.#deps;
    if (this.#unreadBytes > MAX_UNREAD_BYTES) return false;
    let moved: MovedNamespaces | undefined = first;
    let isTouched = true;
    const { collection } = this.#scope;
    const follow: WatchListener = ({ gained, lost, moved: next }, removed, before) => {
      // Its last events are to be shown, which only a watch knows that has seen it.
      const hasGone = hasLostOneOf(removed, collection, before);
      if (!gained && !lost && !hasGone) return;
      this.#noteHidden();
      isTouched = true;
      moved = moved && next && !hasGone ? together(moved, next) : undefined;
    };
    const unfollow = resync.watching(collection, follow);
    const asking = new CallAbort();
    const timer = this.#deps.clock.after(PATIENCE_MS, () =>
      asking.abort(new MeshError("ABORTED", "renewing a watch: no answer in time")),
    );
    this.#asking = asking;
    try {
      for (let tries = 0; tries < MAX_TRIES && isTouched && moved !== undefined; tries++) {
        isTouched = false;
        const renewed = await this.#renew(version, moved, asking);
        if (isTouched || this.#over) renewed.source.cancel(GIVEN_UP);
        else this.#send(renewed);
        if (this.#over) return false;
      }
    } catch {
      return false; // why does not matter: the client lists again
    } finally {
      timer.cancel();
      this.#asking = undefined;
      unfollow();
    }
    return !isTouched;
  }

  #send({ frames, source, scope }: Renewed): void {
    const { metrics } = this.#deps;
    metrics.eventsOf(scope.collection).forwarded.value += frames.length;
    // The client may go with any of them.
    for (const frame of frames) if (!this.#over && !this.#sink.write(frame)) this.#unreadBytes += frame.length;
    if (this.#over) source.cancel(GIVEN_UP);
    else this.#open(source, scope);
  }
}

/** Two changes as one; what came and went again, or went and came again, is none. Undefined if it is too much. */
function together(first: MovedNamespaces, next: MovedNamespaces): MovedNamespaces | undefined {
  const gained = [...without(first.gained, next.lost), ...without(next.gained, first.lost)];
  const lost = [...without(first.lost, next.gained), ...without(next.lost, first.gained)];
  return gained.length + lost.length > MAX_MOVED ? undefined : { gained: [...new Set(gained)], lost: [...new Set(lost)] };
}

function without(names: readonly string[], others: readonly string[]): string[] {
  return names.filter((name) => !others.includes(name));
}
