// One HTTP/1.1 request to the API server and its response, on undici's dispatch API: a full sink pauses the
// HTTP parser. The API server sends lists in chunks of a kilobyte or two, so what arrives in one turn of the
// event loop is written together. Invariants: after `cancel` or the signal nothing is written to the sink; a
// write without an answer stays in flight until it is answered or abandoned, since the API server may do it.
import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";
import type { Clock, Timer } from "../../base/clock.ts";
import { errorMessage, isMeshError, MeshError } from "../../base/errors.ts";
import type { ByteSink, ByteSource, SourceControl } from "../http/byte-stream.ts";
import type { CallSignal } from "../http/call-signal.ts";
import type { Reply } from "../http/handler.ts";
import { repliedHeaders } from "./headers.ts";

/** The bytes that may arrive before the body is opened. With more the parser is paused. */
const UNOPENED_BYTES = 64 * 1024;
/** So many bytes are written before the turn ends. */
const TOGETHER_BYTES = 64 * 1024;

/** Its `then` starts microtasks, without the AsyncResource that `queueMicrotask` creates each time. */
const LATER = Promise.resolve();

/** Requests that change nothing. They end immediately when the client goes. */
export const SAFE_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);

/** Why nothing of a write may be sent now; undefined: it may. */
export type MayWrite = () => MeshError | undefined;

/** How often a write without an answer is asked for again. Its bytes may still wait in this process for a peer that takes none. */
export const ASK_AGAIN_MS = 500;

export interface ExchangeOptions {
  /** Undefined: the request changes nothing, or may always pass. */
  readonly mayWrite?: MayWrite | undefined;
  /** Fires when the client is gone. */
  readonly signal: CallSignal;
  readonly clock: Clock;
  /** How long a write that was sent stays in flight without its client. */
  readonly abandonedMs: number;
  /** Called once, when the request has freed its connection or is abandoned. */
  readonly onOver?: (() => void) | undefined;
}

/** Resolves with the response's head. @throws MeshError those of `upstreamError`; `ABORTED` */
export function exchange(pool: Dispatcher, request: Dispatcher.DispatchOptions, options: ExchangeOptions): Promise<Reply> {
  return new Promise((resolve, reject) => {
    pool.dispatch(request, new Exchange(request.method, options, resolve, reject));
  });
}

/** An exchange only moves down this list. */
type Progress =
  | { readonly is: "waiting" }
  /** The client is gone. The answer will be dropped. */
  | { readonly is: "abandoned"; readonly error: MeshError }
  | { readonly is: "answered" }
  | { readonly is: "complete" }
  | { readonly is: "failed"; readonly error: Error };

class Exchange implements Dispatcher.DispatchHandler, ByteSource, SourceControl {
  readonly #method: string;
  readonly #options: ExchangeOptions;
  #onOver: (() => void) | undefined;
  readonly #resolve: (reply: Reply) => void;
  readonly #reject: (error: Error) => void;
  readonly #onSignal: () => void;
  #controller: Dispatcher.DispatchController | undefined;
  #sink: ByteSink | undefined;
  /** Bytes that are not written yet. */
  #held: Buffer[] = [];
  #heldBytes = 0;
  #writesLater = false;
  #progress: Progress = { is: "waiting" };
  #abandonedTimer: Timer | undefined;
  #askAgainTimer: Timer | undefined;
  /** No more calls to the sink. */
  #closed = false;

  constructor(method: string, options: ExchangeOptions, resolve: (reply: Reply) => void, reject: (error: Error) => void) {
    const { signal, onOver } = options;
    this.#method = method;
    this.#options = options;
    this.#onOver = onOver;
    this.#resolve = resolve;
    this.#reject = reject;
    // Not assigned directly: V8 puts a function literal that is assigned to a property into the old
    // generation, where it keeps the whole request alive until a full collection (node --trace-gc).
    const onSignal = () =>
      this.#abandon(new MeshError("ABORTED", "talking to the API server: aborted", { cause: signal.reason }));
    this.#onSignal = onSignal;
    if (signal.aborted) this.#onSignal();
    else signal.addEventListener("abort", this.#onSignal, { once: true });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    const { mayWrite } = this.#options;
    const refusal = mayWrite?.();
    if (refusal !== undefined) this.#fail(refusal);
    this.#controller = controller;
    if (this.#progress.is === "failed") controller.abort(this.#progress.error);
    else if (mayWrite !== undefined) this.#askAgain(mayWrite);
  }

  #askAgain(mayWrite: MayWrite): void {
    this.#askAgainTimer = this.#options.clock.after(ASK_AGAIN_MS, () => {
      const cause = mayWrite();
      if (cause === undefined) this.#askAgain(mayWrite);
      else this.#fail(new MeshError("UPSTREAM_BROKEN", "waiting for the API server: the write was cut", { cause }));
    });
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return;
    if (this.#progress.is === "abandoned") this.#fail(this.#progress.error);
    if (this.#progress.is !== "waiting") return;
    this.#progress = { is: "answered" };
    this.#askAgainTimer?.cancel();
    const empty = this.#method === "HEAD" || status === 204 || status === 304 || headers["content-length"] === "0";
    const head = { status, headers: repliedHeaders(headers) };
    void LATER.then(() => this.#resolve({ ...head, body: empty ? null : this.#body() }));
  }

  // A small body that came with its head is handed out as bytes, which costs no stream.
  #body(): Uint8Array | ByteSource {
    if (this.#progress.is !== "complete" || this.#closed) return this;
    this.#closed = true;
    return this.#takeHeld();
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#closed || this.#progress.is === "failed") return;
    this.#held.push(chunk);
    this.#heldBytes += chunk.length;
    if (this.#sink === undefined) {
      if (this.#heldBytes >= UNOPENED_BYTES) controller.pause();
    } else if (this.#heldBytes >= TOGETHER_BYTES) this.#writeHeld(this.#sink);
    else if (!this.#writesLater) {
      this.#writesLater = true;
      setImmediate(() => {
        this.#writesLater = false;
        if (this.#sink !== undefined) this.#writeHeld(this.#sink);
      });
    }
  }

  onResponseEnd(): void {
    if (this.#progress.is === "failed") return;
    this.#progress = { is: "complete" };
    this.#leave();
    this.#options.signal.removeEventListener("abort", this.#onSignal);
    this.#finishSink((sink) => sink.end());
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    const before = this.#progress;
    const earlierError = before.is === "abandoned" || before.is === "failed" ? before.error : undefined;
    this.#finishWith(earlierError ?? upstreamError(error, this.#controller !== undefined));
  }

  open(sink: ByteSink): SourceControl {
    void LATER.then(() => this.#flush(sink));
    return this;
  }

  // In a microtask, since undici's parser must not be resumed inside another response's callback.
  resume(): void {
    if (this.#closed) return;
    void LATER.then(() => {
      if (!this.#closed) this.#controller?.resume();
    });
  }

  cancel(error: Error): void {
    this.#closed = true;
    this.#fail(error);
  }

  #flush(sink: ByteSink): void {
    if (this.#closed) return;
    this.#sink = sink;
    const progress = this.#progress;
    if (progress.is === "complete") this.#finishSink((it) => it.end());
    else if (progress.is === "failed") this.#finishSink((it) => it.abort(progress.error));
    else if (this.#writeHeld(sink)) this.#controller?.resume();
  }

  /** False if the sink is full or gone. */
  #writeHeld(sink: ByteSink): boolean {
    if (this.#closed) return false;
    if (this.#held.length === 0 || sink.write(this.#takeHeld())) return !this.#closed;
    this.#controller?.pause();
    return false;
  }

  #takeHeld(): Buffer {
    const held = this.#held;
    this.#held = [];
    this.#heldBytes = 0;
    return held.length === 1 ? (held[0] as Buffer) : Buffer.concat(held);
  }

  #finishSink(end: (sink: ByteSink) => void): void {
    const sink = this.#sink;
    if (sink === undefined || this.#closed) return;
    if (this.#held.length > 0) sink.write(this.#takeHeld());
    if (this.#closed) return;
    this.#closed = true;
    end(sink);
  }

  #abandon(error: MeshError): void {
    if (SAFE_METHODS.has(this.#method) || this.#controller === undefined || this.#progress.is !== "waiting") {
      this.#fail(error);
      return;
    }
    const { clock, abandonedMs } = this.#options;
    this.#progress = { is: "abandoned", error };
    this.#leave(); // no other request waits for an answer that will be dropped
    this.#abandonedTimer = clock.after(abandonedMs, () => this.#fail(error));
  }

  #fail(error: Error): void {
    this.#held = [];
    if (this.#progress.is === "complete" || this.#progress.is === "failed") return;
    this.#finishWith(error); // before the abort: undici calls no handler of a request that still waits for its connection
    this.#controller?.abort(error);
  }

  #finishWith(error: Error): void {
    this.#progress = { is: "failed", error };
    this.#leave();
    this.#options.signal.removeEventListener("abort", this.#onSignal);
    this.#abandonedTimer?.cancel();
    this.#askAgainTimer?.cancel();
    this.#reject(error); // does nothing once the head has been handed out
    this.#finishSink((sink) => sink.abort(error));
  }

  #leave(): void {
    const onOver = this.#onOver;
    this.#onOver = undefined;
    onOver?.();
  }
}

const TIMEOUT_CODES = new Set(["UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT"]);
const BAD_REQUEST_CODES = new Set(["UND_ERR_INVALID_ARG", "UND_ERR_NOT_SUPPORTED", "UND_ERR_REQ_CONTENT_LENGTH_MISMATCH"]);

/** @param isHandedOver to a connection: the API server may have processed the request */
export function upstreamError(cause: unknown, isHandedOver: boolean): MeshError {
  if (isMeshError(cause, "ABORTED") || isMeshError(cause, "REQUEST_BODY_BROKEN")) return cause;
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  if (BAD_REQUEST_CODES.has(code)) return new MeshError("BAD_REQUEST", "forwarding the request: it is not valid HTTP", { cause });
  if (TIMEOUT_CODES.has(code)) return new MeshError("UPSTREAM_TIMEOUT", "waiting for the API server: timed out", { cause });
  if (isHandedOver) return new MeshError("UPSTREAM_BROKEN", "waiting for the API server: the connection broke", { cause });
  return new MeshError("UPSTREAM_UNREACHABLE", `connecting to the API server: ${errorMessage(cause)}`, { cause });
}
