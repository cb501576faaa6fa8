// Binds and closes a server with all its sockets. Invariant: after `close` no socket is open, including
// upgraded ones, which Node does not track.
import type { AddressInfo, ListenOptions, Server, Socket } from "node:net";
import { MeshError } from "./errors.ts";

/** Where to listen; port 0 takes a free one. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/**
 * Connections that the system keeps until the process takes them: the most that Linux allows by default.
 * While the event loop is busy, a flood fills Node's default of 511, and honest clients try again after 1, 3
 * and 7 s.
 */
const BACKLOG = 4_096;

/** Without a host Node listens on all addresses, IPv6 and IPv4, or only IPv4 on a kernel without IPv6. */
export function listenOptions({ host, port }: ListenAddress): ListenOptions {
  return host === "::" ? { port, backlog: BACKLOG } : { host, port, backlog: BACKLOG };
}

/** @throws MeshError `LISTEN_FAILED` */
export function listen(server: Server, { host, port }: ListenAddress): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    const failed = (cause: Error) => reject(new MeshError("LISTEN_FAILED", `listening on ${host}:${port}`, { cause }));
    server.once("error", failed);
    server.listen(listenOptions({ host, port }), () => {
      server.off("error", failed);
      // A connection that cannot be accepted, for want of file descriptors, must not end the process.
      server.on("error", () => undefined);
      resolve(server.address() as AddressInfo);
    });
  });
}

export type Listener = ReturnType<typeof createListener>;

/** An HTTP server can close its idle connections. */
type AnyServer = Server & { closeIdleConnections?(): void };

/** @param connectionEvent `secureConnection` for TLS, otherwise `connection` */
export function createListener(server: AnyServer, connectionEvent: "connection" | "secureConnection") {
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
    /** @throws MeshError `LISTEN_FAILED` */
    listen: (address: ListenAddress) => listen(server, address),
    /** Accepts no new connections, and closes idle ones. */
    stopAccepting: stop,
    /** Closes all connections. */
    async close(): Promise<void> {
      stop();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
