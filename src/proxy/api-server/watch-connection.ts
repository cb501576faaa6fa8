// One HTTP/2 connection to the API server that carries many watches. Invariants: after GOAWAY it takes no new
// stream, and running ones continue; if the peer answers no PING, all streams end immediately; a paused
// stream never stops its neighbours, and holds at most STREAM_WINDOW_BYTES beside its Readable's buffer.
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import type { TLSSocket } from "node:tls";
import type { Clock, Timer } from "../../base/clock.ts";
import { MeshError } from "../../base/errors.ts";

/** What a watch may hold while its client does not read. It allows 64 MB/s at 2 ms to the API server. */
const STREAM_WINDOW_BYTES = 128 * 1024;
const CONNECTION_WINDOW_BYTES = 1024 * 1024;
/** The API server's own bound counts if it is lower (Go's default since 2023 is 100). */
const MAX_STREAMS = 250;
/** The API server's bound until its settings are known. */
const ASSUMED_STREAMS = 100;
/** As many bytes of headers as the traffic server takes; nghttp2's own bound is half of that. */
const MAX_HEADER_BYTES = 256 * 1024;
const IDLE_MS = 60_000;
/** Go's server runs at most 4 handlers for each stream that it allows at a time. */
const HANDLERS_PER_STREAM = 4;
/** How long the handler of an abandoned stream may still run. */
const LINGER_MS = 1_000;
/** The wait for the API server's settings, which come with its first bytes. */
const SETTINGS_MS = 2_000;
/** Room for all streams to be paused together; Node refuses new streams beyond it (10 by default). */
const MAX_MEMORY_MB = 64;

export interface WatchConnectionOptions {
  readonly socket: TLSSocket;
  readonly origin: string;
  readonly clock: Clock;
  readonly pingEveryMs: number;
  /** The connection takes no new stream any more. */
  readonly onRetired: (connection: WatchConnection) => void;
  readonly onLost: () => void;
}

export class WatchConnection {
  readonly #session: ClientHttp2Session;
  readonly #options: WatchConnectionOptions;
  /** The times at which streams were abandoned, the oldest first. */
  readonly #abandonedAtMs: number[] = [];
  #streams = 0;
  #maxStreams = ASSUMED_STREAMS;
  #retired = false;
  #isPingAnswered = true;
  #bytesReadAtPing = 0;
  #pingTimer: Timer | undefined;
  #idleTimer: Timer | undefined;
  /** Resolves once the API server's settings are known or given up, or the connection has ended. */
  readonly whenReady: Promise<void>;

  constructor(options: WatchConnectionOptions) {
    this.#options = options;
    const { socket, origin } = options;
    this.#session = connect(origin, {
      createConnection: () => socket,
      maxSendHeaderBlockLength: MAX_HEADER_BYTES,
      maxSessionMemory: MAX_MEMORY_MB,
      settings: { enablePush: false, initialWindowSize: STREAM_WINDOW_BYTES },
    });
    this.#session
      .once("connect", () => this.#session.setLocalWindowSize(CONNECTION_WINDOW_BYTES))
      .on("remoteSettings", ({ maxConcurrentStreams }) => {
        this.#maxStreams = Math.min(maxConcurrentStreams ?? MAX_STREAMS, MAX_STREAMS);
      })
      .on("goaway", () => this.#retire())
      .on("error", () => this.#retire()) // each stream gets the error too
      .once("close", () => this.#closed());
    this.whenReady = this.#untilSettings();
    this.#armPing();
    this.#armIdle();
  }

  get hasRoom(): boolean {
    if (this.isOver || this.#streams >= this.#maxStreams) return false;
    const fromMs = this.#options.clock.monotonicMs() - LINGER_MS;
    while ((this.#abandonedAtMs[0] ?? fromMs) < fromMs) this.#abandonedAtMs.shift();
    return this.#streams + this.#abandonedAtMs.length < HANDLERS_PER_STREAM * this.#maxStreams;
  }

  /** True if the connection takes no new stream. */
  get isOver(): boolean {
    return this.#retired || this.#session.closed || this.#session.destroyed;
  }

  /** @param headers name, value, ..., pseudo headers first. Throws Node's error if they are not valid. */
  open(headers: readonly string[]): ClientHttp2Stream {
    const stream = this.#session.request(headers, { endStream: true });
    this.#streams++;
    this.#idleTimer?.cancel();
    stream.once("close", () => {
      this.#streams--;
      if (stream.rstCode !== constants.NGHTTP2_NO_ERROR) this.#abandonedAtMs.push(this.#options.clock.monotonicMs());
      if (this.#streams === 0) this.#armIdle();
    });
    return stream;
  }

  destroy(): void {
    this.#session.destroy();
  }

  #untilSettings(): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#options.clock.after(SETTINGS_MS, resolve);
      const ready = () => {
        timer.cancel();
        resolve();
      };
      this.#session.once("remoteSettings", ready).once("close", ready);
    });
  }

  #retire(): void {
    if (this.#retired) return;
    this.#retired = true;
    this.#options.onRetired(this);
  }

  #closed(): void {
    this.#pingTimer?.cancel();
    this.#idleTimer?.cancel();
    this.#retire();
  }

  #armIdle(): void {
    this.#idleTimer = this.#options.clock.after(IDLE_MS, () => this.#session.close());
  }

  // Any bytes count as an answer: on a slow link the answer to a PING comes behind other data.
  #armPing(): void {
    const { clock, pingEveryMs, socket } = this.#options;
    const dueMs = clock.monotonicMs() + pingEveryMs;
    this.#pingTimer = clock.after(pingEveryMs, () => {
      const isLate = clock.monotonicMs() - dueMs > pingEveryMs / 2; // this process was stopped, so that the answer may be unread
      const hasRead = () => socket.bytesRead !== this.#bytesReadAtPing;
      const isAlive = () => this.#session.closed || this.#isPingAnswered || isLate || hasRead();
      if (isAlive()) this.#ping();
      // Timers run before sockets are read, so that bytes which came meanwhile are seen in an immediate.
      else setImmediate(() => (isAlive() ? this.#ping() : this.#lost()));
    });
  }

  // After GOAWAY has closed the session, Node sends no PING. TCP keepalive then notices a vanished peer.
  #ping(): void {
    if (this.#session.closed || this.#session.destroyed) return;
    this.#isPingAnswered = false;
    this.#bytesReadAtPing = this.#options.socket.bytesRead;
    this.#session.ping((error) => {
      if (error === null) this.#isPingAnswered = true;
    });
    this.#armPing();
  }

  #lost(): void {
    if (this.#session.destroyed) return;
    this.#options.onLost();
    this.#retire();
    this.#session.destroy(new MeshError("PEER_LOST", "watching: the API server answers nothing any more"));
  }
}
