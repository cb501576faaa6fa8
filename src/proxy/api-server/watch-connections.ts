// The HTTP/2 connections for watches: most often one, and another one if the first is full or got GOAWAY.
// Invariant: one attempt to connect at a time, whose failure all waiting watches share.
import type { ClientHttp2Stream } from "node:http2";
import type { TLSSocket } from "node:tls";
import type { Clock } from "../../base/clock.ts";
import { MeshError } from "../../base/errors.ts";
import { type CallSignal, unlessAborted } from "../http/call-signal.ts";
import type { Connect } from "./connector.ts";
import { upstreamError } from "./exchange.ts";
import { WatchConnection } from "./watch-connection.ts";

export interface WatchConnectionsOptions {
  readonly origin: URL;
  /** Offers HTTP/2. */
  readonly connect: Connect;
  readonly clock: Clock;
  readonly pingEveryMs: number;
  readonly onLost: () => void;
}

/** The proxy asks a server without HTTP/2 again after this time. */
const ASK_AGAIN_MS = 10 * 60_000;
const CONNECTING = "connecting to the API server";
const STALE_CODES = new Set(["ERR_HTTP2_GOAWAY_SESSION", "ERR_HTTP2_INVALID_SESSION"]);
/** Node's error codes about headers, which come from the client. */
const HEADER_CODE = /HEADER|HTTP_TOKEN|INVALID_CHAR|INVALID_ARG/;

export function createWatchConnections(options: WatchConnectionsOptions) {
  const { origin, connect, clock, pingEveryMs, onLost } = options;
  const usable = new Set<WatchConnection>();
  const all = new Set<WatchConnection>();
  let connecting: Promise<void> | undefined;
  let noHttp2UntilMs = 0;
  let destroyed = false;

  const connectOnce = async () => {
    const socket = await connectSocket(connect, origin);
    if (destroyed) {
      socket.destroy();
      throw new MeshError("UPSTREAM_UNREACHABLE", "connecting to the API server: shutting down");
    }
    if (socket.alpnProtocol !== "h2") {
      socket.destroy();
      noHttp2UntilMs = clock.monotonicMs() + ASK_AGAIN_MS;
      return;
    }
    const connection = new WatchConnection({
      socket,
      origin: origin.origin,
      clock,
      pingEveryMs,
      onLost,
      onRetired: (one) => usable.delete(one),
    });
    all.add(connection);
    socket.once("close", () => all.delete(connection));
    await connection.whenReady; // the server may allow fewer streams than assumed, and the others would wait unseen
    if (connection.isOver)
      throw new MeshError("UPSTREAM_UNREACHABLE", "connecting to the API server: it ended the connection at once");
    if (!connection.hasRoom) {
      connection.destroy(); // the next one would be no better
      throw new MeshError("UPSTREAM_UNREACHABLE", "connecting to the API server: it allows no streams");
    }
    usable.add(connection);
  };

  return {
    /**
     * Opens a stream; undefined if the server speaks no HTTP/2.
     * @param headers name, value, ..., pseudo headers first
     * @throws MeshError `UPSTREAM_UNREACHABLE`, `UPSTREAM_BROKEN`, `BAD_REQUEST`, `ABORTED`
     */
    async open(headers: readonly string[], signal: CallSignal): Promise<ClientHttp2Stream | undefined> {
      for (;;) {
        if (signal.aborted) throw new MeshError("ABORTED", `${CONNECTING}: aborted`, { cause: signal.reason });
        const stream = openOn(usable, headers);
        if (stream !== undefined) return stream;
        if (clock.monotonicMs() < noHttp2UntilMs) return undefined;
        connecting ??= connectOnce().finally(() => {
          connecting = undefined;
        });
        await shared(connecting, signal);
      }
    },
    destroy(): void {
      destroyed = true;
      for (const connection of all) connection.destroy();
    },
  };
}

function openOn(usable: Set<WatchConnection>, headers: readonly string[]): ClientHttp2Stream | undefined {
  for (const connection of usable) {
    if (!connection.hasRoom) continue;
    try {
      return connection.open(headers);
    } catch (error) {
      const code = error instanceof Error && "code" in error ? String(error.code) : "";
      if (HEADER_CODE.test(code))
        throw new MeshError("BAD_REQUEST", "forwarding the request: it is not valid HTTP", { cause: error });
      usable.delete(connection);
      if (!STALE_CODES.has(code)) throw upstreamError(error, true);
    }
  }
  return undefined;
}

function connectSocket(connect: Connect, { protocol, host, hostname, port }: URL): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    // As undici does it: an IPv6 address without its brackets.
    const name = hostname.startsWith("[") ? hostname.slice(1, -1) : hostname;
    connect({ protocol, host, hostname: name, port }, (error, socket) => {
      if (error !== null) reject(upstreamError(error, false));
      else resolve(socket as TLSSocket);
    });
  });
}

/** The attempt to connect as one of its waiting watches sees it. */
function shared(attempt: Promise<void>, signal: CallSignal): Promise<void> {
  return unlessAborted(signal, CONNECTING, (done) => {
    attempt.then(() => done(), done);
    return () => undefined;
  });
}
