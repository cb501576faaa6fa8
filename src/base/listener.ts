// Binding and closing of a server, an HTTP(S) one as a rule, and all its sockets, shared by the traffic and the health listener. Invariant:
// after `close` no socket is left, upgraded ones included, which Node's own bookkeeping forgets.
import type { AddressInfo, Server, Socket } from "node:net";
import { MeshError } from "./errors.ts";

/** Where to listen; port 0 takes a free one. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

export interface Listener {
  /** @throws MeshError `LISTEN_FAILED` */
  listen(address: ListenAddress): Promise<AddressInfo>;
  /** No new connections; those between two requests are closed. */
  stopAccepting(): void;
  /** Destroys what is left. */
  close(): Promise<void>;
}

/** A server; HTTP ones can tell which of their connections are idle. */
type AnyServer = Server & { closeIdleConnections?(): void };

/** Takes the server over. `connectionEvent` is `secureConnection` for TLS, else `connection`. */
export function createListener(server: AnyServer, connectionEvent: "connection" | "secureConnection"): Listener {
  const sockets = new Set<Socket>();
  const track = (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  };
  server.on("connection", track);
  if (connectionEvent !== "connection") server.on(connectionEvent, track);
  let closed: Promise<void> | undefined;
  const stop = () => {
    closed ??= server.listening ? new Promise((resolve) => server.close(() => resolve())) : Promise.resolve();
    server.closeIdleConnections?.();
  };
  return {
    listen({ host, port }) {
      return new Promise((resolve, reject) => {
        const failed = (cause: Error) => reject(new MeshError("LISTEN_FAILED", `listening on ${host}:${port}`, { cause }));
        server.once("error", failed);
        server.listen({ host, port }, () => {
          server.off("error", failed);
          // A connection that could not be accepted (no file descriptor left) is its client's failure, and not the end of us.
          server.on("error", () => undefined);
          resolve(server.address() as AddressInfo);
        });
      });
    },
    stopAccepting: stop,
    async close() {
      stop();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
