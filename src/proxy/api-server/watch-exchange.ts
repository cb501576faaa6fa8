// One watch on an HTTP/2 stream, with the same contract as exchange.ts. Invariants: a full sink pauses this
// stream alone; after `cancel` or the call's signal the stream is reset (CANCEL) and nothing is written to
// the sink; only a body that the API server ended ends cleanly.
import { type ClientHttp2Stream, constants, type IncomingHttpHeaders } from "node:http2";
import { onAbort } from "../../base/abort.ts";
import type { Clock, Timer } from "../../base/clock.ts";
import { MeshError } from "../../base/errors.ts";
import type { ByteSink, ByteSource, SourceControl } from "../http/byte-stream.ts";
import type { CallSignal } from "../http/call-signal.ts";
import type { Reply } from "../http/handler.ts";
import { upstreamError } from "./exchange.ts";
import { repliedHeaders } from "./headers.ts";

export interface WatchExchangeOptions {
  /** Fires when the client is gone. */
  readonly signal: CallSignal;
  readonly clock: Clock;
  /** The longest wait for the head; 0 for no bound. */
  readonly headersMs: number;
}

/** Resolves with the response's head. @throws MeshError `UPSTREAM_BROKEN`, `UPSTREAM_TIMEOUT`, `ABORTED` */
export function watchExchange(stream: ClientHttp2Stream, options: WatchExchangeOptions): Promise<Reply> {
  return new Promise((resolve, reject) => {
    new WatchExchange(stream, options, resolve, reject);
  });
}

class WatchExchange implements ByteSource, SourceControl {
  readonly #stream: ClientHttp2Stream;
  readonly #reject: (error: Error) => void;
  #unlink = () => {};
  readonly #headTimer: Timer | undefined;
  #sink: ByteSink | undefined;
  #error: Error | undefined;
  #ended = false;
  /** No more calls to the sink. */
  #over = false;

  constructor(
    stream: ClientHttp2Stream,
    { signal, clock, headersMs }: WatchExchangeOptions,
    resolve: (reply: Reply) => void,
    reject: (error: Error) => void,
  ) {
    this.#stream = stream;
    this.#reject = reject;
    if (headersMs > 0)
      this.#headTimer = clock.after(headersMs, () =>
        this.#fail(new MeshError("UPSTREAM_TIMEOUT", "waiting for the API server: timed out")),
      );
    stream
      .once("response", (headers) => this.#answered(headers, resolve))
      .on("error", (error) => {
        this.#error ??= upstreamError(error, true);
      })
      .once("end", () => {
        this.#ended = true;
      })
      .once("close", () => this.#closed());
    this.#unlink = onAbort(signal, () =>
      this.#fail(new MeshError("ABORTED", "talking to the API server: aborted", { cause: signal.reason })),
    );
  }

  open(sink: ByteSink): SourceControl {
    queueMicrotask(() => this.#flow(sink));
    return this;
  }

  resume(): void {
    if (!this.#over) this.#stream.resume();
  }

  cancel(error: Error): void {
    this.#over = true;
    this.#fail(error);
  }

  #answered(headers: IncomingHttpHeaders & { ":status"?: number | undefined }, resolve: (reply: Reply) => void): void {
    this.#headTimer?.cancel();
    const { ":status": status = 502, ...rest } = headers;
    resolve({ status, headers: repliedHeaders(rest), body: this });
  }

  #flow(sink: ByteSink): void {
    if (this.#over) return;
    this.#sink = sink;
    if (this.#stream.destroyed) {
      this.#finish();
      return;
    }
    this.#stream.on("data", (chunk: Buffer) => {
      if (!this.#over && !sink.write(chunk)) this.#stream.pause();
    });
  }

  #closed(): void {
    this.#headTimer?.cancel();
    this.#unlink();
    this.#finish();
  }

  // Settles the head's promise and ends the sink, each once.
  #finish(): void {
    const clean = this.#ended && this.#error === undefined && this.#stream.rstCode === constants.NGHTTP2_NO_ERROR;
    const error = this.#error ?? upstreamError(new Error(`stream closed with code ${this.#stream.rstCode}`), true);
    this.#reject(error); // does nothing once the head has been handed out
    if (this.#sink === undefined || this.#over) return;
    this.#over = true;
    if (clean) this.#sink.end();
    else this.#sink.abort(error);
  }

  #fail(error: Error): void {
    if (this.#stream.destroyed && this.#error !== undefined) return;
    this.#error ??= error;
    this.#headTimer?.cancel();
    this.#unlink();
    this.#stream.close(constants.NGHTTP2_CANCEL);
    this.#stream.destroy();
    this.#finish();
  }
}
