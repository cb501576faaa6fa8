// The sockets of the snapshot server. They are ours and not gRPC's, since gRPC ends a stream only after everything written to it was
// read: a proxy that reads nothing would keep its buffers for ever. Invariant: after `close` no socket is left.
import { createServer, type Server as NetServer, type Socket } from "node:net";
import type { Server, ServerCredentials } from "@grpc/grpc-js";
import type { Clock } from "../../base/clock.ts";
import { MeshError } from "../../base/errors.ts";
import type { ListenAddress } from "../../base/listener.ts";
import { formatAddress } from "../../base/settings.ts";

export interface ProxyListener {
  /** Resolves with the bound port. @throws MeshError `LISTEN_FAILED` */
  listen(): Promise<number>;
  /** Destroys the connection with this peer, as gRPC names it. */
  cut(peer: string): void;
  /** Waits for the connections to end, for `graceMs`. */
  close(graceMs: number): Promise<void>;
}

// Far more than proxies of one cluster: what is beyond finds no room for its stream either.
const MAX_CONNECTIONS = 8_192;

export function createProxyListener(options: {
  readonly grpc: Server;
  readonly credentials: ServerCredentials;
  readonly listen: ListenAddress;
  readonly clock: Clock;
}): ProxyListener {
  const { grpc, credentials, clock } = options;
  const injector = grpc.createConnectionInjector(credentials);
  const sockets = new Map<string, Socket>();
  const server: NetServer = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    const peer = `${socket.remoteAddress}:${socket.remotePort}`;
    sockets.set(peer, socket);
    socket.once("close", () => sockets.delete(peer));
    socket.on("error", () => socket.destroy());
    injector.injectConnection(socket);
  });
  server.maxConnections = MAX_CONNECTIONS;
  return {
    listen: () =>
      new Promise((resolve, reject) => {
        // Stays: a connection that could not be accepted later (no file descriptor left) must not end the process.
        server.on("error", (cause) =>
          reject(new MeshError("LISTEN_FAILED", `listening for proxies on ${formatAddress(options.listen)}`, { cause })),
        );
        server.listen(options.listen, () => {
          const address = server.address();
          resolve(typeof address === "object" && address !== null ? address.port : 0);
        });
      }),
    cut: (peer) => sockets.get(peer)?.destroy(),
    async close(graceMs) {
      const closed = server.listening ? new Promise<void>((resolve) => server.close(() => resolve())) : Promise.resolve();
      injector.drain(graceMs);
      const forced = clock.after(graceMs, () => {
        for (const socket of sockets.values()) socket.destroy();
      });
      await closed;
      forced.cancel();
      grpc.forceShutdown();
    },
  };
}
