// Connections to one webhook server, the operator's or a peer's. Invariants: each server is checked before
// any byte of a request is sent. Hop-by-hop headers stop here, and the mesh's own headers never reach the
// operator. A client that is gone, or whose time is up, ends the request.
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import { type buildConnector, type Dispatcher, Pool } from "undici";
import { type Clock, createDeadline } from "../../base/clock.ts";
import { exchange } from "../api-server/exchange.ts";
import { forwardedHeaders } from "../api-server/headers.ts";
import { readableOf } from "../http/byte-stream.ts";
import type { HttpCall, Reply } from "../http/handler.ts";

export type Sent = Pick<HttpCall, "method" | "target" | "headers" | "body" | "signal">;

export interface ServerPoolOptions {
  readonly address: string;
  /** Asked for each connection, since certificates are rotated. */
  readonly options: () => Promise<ConnectionOptions>;
  /** Throws to refuse the server. */
  readonly check?: (socket: TLSSocket) => Promise<void>;
  readonly connectMs: number;
  /** A server that has accepted the connection may be busy. */
  readonly handshakeMs: number;
  /** Less than the server's: a review on a connection that just closes has no answer. */
  readonly idleMs: number;
  readonly clock: Clock;
}

/** If 64 handshakes began together, all would end late. The time of each begins when its turn comes. */
const HANDSHAKES_AT_ONCE = 4;
/** Longer than any caller waits: its signal ends the request. */
const MAX_MS = 120_000;

export type ServerPool = ReturnType<typeof createServerPool>;

/** Each connection has at most one request at a time. */
export function createServerPool(options: ServerPoolOptions) {
  const { address, idleMs, clock } = options;
  const pool = new Pool(`https://${address}`, {
    connect: connector(options),
    connections: null,
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: idleMs,
  });
  return {
    /**
     * @param mark headers to add, as name, value, ...
     * @throws MeshError as `exchange`; its texts name the API server
     */
    send: (sent: Sent, mark: readonly string[] = []): Promise<Reply> =>
      exchange(pool, dispatchOptions(sent, mark), { signal: sent.signal, clock, abandonedMs: 0 }),
    /** Ends each connection once it is idle. */
    close: (): Promise<void> => pool.close(),
  };
}

function connector({ options, check, connectMs, handshakeMs, clock }: ServerPoolOptions): buildConnector.connector {
  const open = fewAtOnce(HANDSHAKES_AT_ONCE, async (): Promise<TLSSocket> => {
    const socket = connect({ ...(await options()), ALPNProtocols: ["http/1.1"] });
    socket.setNoDelay();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    let missing = `connection within ${connectMs / 1000} s`;
    const deadline = createDeadline(clock, () => reject(new Error(`no ${missing}`)));
    deadline.set(connectMs);
    socket.once("connect", () => {
      missing = `TLS handshake within ${handshakeMs / 1000} s`;
      deadline.set(handshakeMs);
    });
    socket.once("error", reject);
    socket.once("close", () => reject(new Error("the connection was closed in the handshake")));
    socket.once("secureConnect", resolve);
    try {
      await promise;
      await check?.(socket);
      socket.removeListener("error", reject);
      return socket;
    } catch (error) {
      socket.on("error", () => undefined);
      socket.destroy();
      throw error;
    } finally {
      deadline.clear();
    }
  });
  return (_options, callback) => {
    open().then(
      (socket) => callback(null, socket),
      (error: Error) => callback(error, null),
    );
  };
}

function dispatchOptions({ method, target, headers, body }: Sent, mark: readonly string[]): Dispatcher.DispatchOptions {
  const isStream = body !== null && !(body instanceof Uint8Array);
  const { host, ...others } = headers;
  const passed = Object.entries(others).filter(([name]) => !name.startsWith("x-ctrlmesh-"));
  const named = forwardedHeaders(Object.fromEntries(passed), isStream);
  return {
    method,
    path: target,
    headers: [...(host === undefined ? [] : ["host", host]), ...named, ...mark],
    body: isStream ? readableOf(body) : body,
    headersTimeout: MAX_MS,
    bodyTimeout: MAX_MS,
    reset: false,
  };
}

/**
 * Runs the work at most `max` times at once; further calls wait in order. When the work fails, all calls that
 * wait fail with the same error, so that nobody waits for a server that is gone.
 */
export function fewAtOnce<T>(max: number, work: () => Promise<T>): () => Promise<T> {
  const waiting: PromiseWithResolvers<void>[] = [];
  let running = 0;
  return async () => {
    if (running >= max) {
      const turn = Promise.withResolvers<void>();
      waiting.push(turn);
      await turn.promise; // whoever resolves it hands over its own place
    } else running++;
    try {
      return await work();
    } catch (error) {
      for (const turn of waiting.splice(0)) turn.reject(error);
      throw error;
    } finally {
      const next = waiting.shift();
      if (next === undefined) running--;
      else next.resolve();
    }
  };
}
