// TLS connections to one server for undici, each checked before any byte of a request is sent. Invariant: a
// burst of reviews cannot make its own handshakes too late, however busy the two processes are. Called by the
// clients of the operator and of peers.
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import type { buildConnector } from "undici";
import type { Clock } from "../../base/clock.ts";
import { createDeadline } from "../../base/deadline.ts";
import { fewAtOnce } from "./few-at-once.ts";

export interface ConnectTlsOptions {
  /** Asked for each connection, since certificates are rotated. */
  readonly options: () => Promise<ConnectionOptions>;
  /** Refuses the server by an error. */
  readonly check?: (socket: TLSSocket) => Promise<void>;
  /** For the TCP connection: a server that accepts none is gone. */
  readonly connectMs: number;
  /** For the TLS handshake: a server that has accepted the connection may be busy. */
  readonly handshakeMs: number;
  readonly clock: Clock;
}

/**
 * Each handshake takes milliseconds of both processes, so of 64 that begin at the same time all end late. The
 * others wait, and their time has not begun.
 */
const HANDSHAKES_AT_ONCE = 4;

export function connectTls({ options, check, connectMs, handshakeMs, clock }: ConnectTlsOptions): buildConnector.connector {
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
