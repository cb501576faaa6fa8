// One request to the API server and its response, on undici's dispatch API without a stream object in between: chunks go
// from the HTTP parser straight into the sink, and a full sink pauses the parser. Invariant: after `cancel` or the call's
// signal the socket is destroyed at once and nothing more is written. Made by the upstream handler.
import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";
import { MeshError } from "../../base/errors.ts";
import type { ByteSink, ByteSource, SourceControl } from "../pipeline/byte-stream.ts";
import type { Reply } from "../pipeline/handler.ts";
import { repliedHeaders } from "./headers.ts";

/** What may arrive before somebody opens the body; beyond it the parser is paused. */
const UNOPENED_BYTES = 64 * 1024;

/** Sends one request. Resolves with the response's head, its body still to be opened. */
export function exchange(pool: Dispatcher, options: Dispatcher.DispatchOptions, signal: AbortSignal): Promise<Reply> {
  return new Promise((resolve, reject) => {
    pool.dispatch(options, new Exchange(options.method, signal, resolve, reject));
  });
}

class Exchange implements Dispatcher.DispatchHandler, ByteSource, SourceControl {
  readonly #method: string;
  readonly #signal: AbortSignal;
  readonly #resolve: (reply: Reply) => void;
  readonly #reject: (error: Error) => void;
  readonly #onSignal: () => void;
  #controller: Dispatcher.DispatchController | undefined;
  #sink: ByteSink | undefined;
  #early: Buffer[] = [];
  #earlyBytes = 0;
  #complete = false;
  #error: Error | undefined;
  /** No more calls to the sink. */
  #closed = false;

  constructor(method: string, signal: AbortSignal, resolve: (reply: Reply) => void, reject: (error: Error) => void) {
    this.#method = method;
    this.#signal = signal;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#onSignal = () => this.#fail(new MeshError("ABORTED", "talking to the API server: aborted", { cause: signal.reason }));
    if (signal.aborted) this.#onSignal();
    else signal.addEventListener("abort", this.#onSignal, { once: true });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#error !== undefined) controller.abort(this.#error);
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return;
    const empty = this.#method === "HEAD" || status === 204 || status === 304 || headers["content-length"] === "0";
    this.#resolve({ status, headers: repliedHeaders(headers), body: empty ? null : this });
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#closed) return;
    if (this.#sink !== undefined) {
      if (!this.#sink.write(chunk)) controller.pause();
      return;
    }
    this.#early.push(chunk);
    this.#earlyBytes += chunk.length;
    if (this.#earlyBytes >= UNOPENED_BYTES) controller.pause();
  }

  onResponseEnd(): void {
    this.#complete = true;
    this.#signal.removeEventListener("abort", this.#onSignal);
    if (this.#sink !== undefined && !this.#closed) this.#close().end();
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    this.#error ??= error;
    this.#signal.removeEventListener("abort", this.#onSignal);
    this.#reject(this.#error); // does nothing once the head has been handed out
    if (this.#sink !== undefined && !this.#closed) this.#close().abort(this.#error);
  }

  open(sink: ByteSink): SourceControl {
    queueMicrotask(() => this.#flush(sink));
    return this;
  }

  // Through a microtask, since undici's parser must not be resumed from inside of another response's callback.
  resume(): void {
    if (!this.#closed) queueMicrotask(() => !this.#closed && this.#controller?.resume());
  }

  cancel(error: Error): void {
    this.#closed = true;
    this.#early = [];
    if (!this.#complete) this.#fail(error);
  }

  #flush(sink: ByteSink): void {
    if (this.#closed) return;
    this.#sink = sink;
    const early = this.#early;
    this.#early = [];
    let wanted = true;
    for (const chunk of early) {
      wanted = sink.write(chunk);
      if (this.#closed) return;
    }
    if (this.#complete) this.#close().end();
    else if (this.#error !== undefined) this.#close().abort(this.#error);
    else if (wanted) this.#controller?.resume();
    else this.#controller?.pause();
  }

  #fail(error: Error): void {
    if (this.#complete || this.#error !== undefined) return;
    this.#error = error;
    this.#signal.removeEventListener("abort", this.#onSignal);
    this.#reject(error); // undici tells no handler of a request that still waits for its connection
    this.#controller?.abort(error);
    if (this.#sink !== undefined && !this.#closed) this.#close().abort(error);
  }

  #close(): ByteSink {
    this.#closed = true;
    return this.#sink as ByteSink;
  }
}
