// The parts of any stack: a handler answers a call, a layer wraps the next handler. A body is bytes, a push
// source or nothing, so that a body of any size passes without being held.
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { Clock } from "../../base/clock.ts";
import type { ByteSource } from "./byte-stream.ts";
import type { CallSignal } from "./call-signal.ts";

export type Handler<C, R> = (call: C) => Promise<R>;

export type Layer<C, R> = (next: Handler<C, R>) => Handler<C, R>;

/** What the layers note about a call for the server. */
export interface CallNotes {
  /** The request has no end of its own. A drain ends it and does not wait for it. */
  isLongRunning?: boolean;
  /** The server ends the call after this time, counted from the head of the reply. */
  endAfterMs?: number;
  /**
   * Called with the status by which the other server has answered an upgrade, or with undefined if its
   * connection failed. Never called if the client left before.
   */
  upgraded?: (status: number | undefined) => void;
  /** Only on the few calls that are measured layer by layer. */
  timing?: LayerTiming;
}

/** Layers pass on changed copies; only `record` is shared and written. */
export interface HttpCall<Notes extends CallNotes = CallNotes> {
  readonly method: string;
  /** Path and query, origin form. */
  readonly target: string;
  /** Header names in lower case. */
  readonly headers: IncomingHttpHeaders;
  /** The body: bytes once a layer has read it, else a source that may be taken once. */
  readonly body: Uint8Array | ByteSource | null;
  /** The protocol to switch to (exec, attach, port-forward); absent for a plain request. */
  readonly upgrade?: string;
  /** Fires when the client is gone or the proxy drains. */
  readonly signal: CallSignal;
  readonly record: Notes;
}

export type ReplyHeaders = Readonly<Record<string, string | readonly string[]>>;

export interface Reply {
  readonly status: number;
  /** Names in lower case, no hop-by-hop ones. A layer that changes the body drops `content-length`. */
  readonly headers: ReplyHeaders;
  readonly body: Uint8Array | ByteSource | null;
  /** With status 101: every layer agreed to the upgrade, and `connect` connects the two sockets. */
  readonly tunnel?: HttpCall;
  readonly connect?: Tunnel;
}

/** Connects the client's socket with another server's; closes the client's if that fails. */
export type Tunnel = (call: HttpCall, req: IncomingMessage, socket: Duplex, head: Buffer) => Promise<void>;

export class LayerTiming {
  /** The milliseconds of each layer so far, in the order of the stack. */
  readonly ms: number[];
  readonly names: readonly string[];
  readonly #clock: Clock;
  #at = 0;
  #sinceMs: number;

  /** Starts in the outermost layer. */
  constructor(clock: Clock, names: readonly string[]) {
    this.names = names;
    this.ms = new Array<number>(names.length).fill(0);
    this.#clock = clock;
    this.#sinceMs = clock.monotonicMs();
  }

  /** From now on the time counts for this layer. Returns the layer before. */
  enter(layer: number): number {
    const nowMs = this.#clock.monotonicMs();
    const before = this.#at;
    this.ms[before] = (this.ms[before] ?? 0) + nowMs - this.#sinceMs;
    this.#sinceMs = nowMs;
    this.#at = layer;
    return before;
  }
}
