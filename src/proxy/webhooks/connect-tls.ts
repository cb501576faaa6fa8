// A TLS connection for undici, checked before any byte of a request is sent. Called by the clients of the operator and of peers.
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import type { buildConnector } from "undici";
import type { Clock } from "../../base/clock.ts";

export interface ConnectTlsOptions {
  /** Asked for each connection, since certificates are rotated. */
  readonly options: () => Promise<ConnectionOptions>;
  /** Refuses the server by an error. */
  readonly check?: (socket: TLSSocket) => Promise<void>;
  readonly timeoutMs: number;
  readonly clock: Clock;
}

export function connectTls({ options, check, timeoutMs, clock }: ConnectTlsOptions): buildConnector.connector {
  const open = async (): Promise<TLSSocket> => {
    const socket = connect({ ...(await options()), ALPNProtocols: ["http/1.1"] });
    socket.setNoDelay();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timer = clock.after(timeoutMs, () => reject(new Error(`no TLS connection within ${timeoutMs / 1000} s`)));
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
      timer.cancel();
    }
  };
  return (_options, callback) => {
    open().then(
      (socket) => callback(null, socket),
      (error: Error) => callback(error, null),
    );
  };
}
