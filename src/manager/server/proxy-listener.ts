// The sockets of the mesh server. gRPC would keep the buffers of a proxy that reads nothing, since it ends a
// stream only after everything written to it was read. Invariant: after `close` no socket is left.
import { createServer, type Server as NetServer, type Socket } from "node:net";
import { type Server, ServerCredentials } from "@grpc/grpc-js";
import { peerOf } from "../../base/guard-connections.ts";
import { type ListenAddress, listen } from "../../base/listener.ts";
import { createTlsTerminator, type TlsTerminatorOptions } from "./tls-terminator.ts";

const MAX_CONNECTIONS = 8_192;

// A proxy has a connection for its stream and one for certificates. While it reconnects, it may have three.
const MAX_PER_POD = 8;

interface ProxyListenerOptions extends Pick<TlsTerminatorOptions, "clock" | "maxUnproved"> {
  readonly grpc: Server;
  readonly listen: ListenAddress;
  /** Default: plain text. */
  readonly tls?: Pick<TlsTerminatorOptions, "identity" | "onRefused">;
}

/** Without TLS, `asked`, `proved` and `refused` have no effect. */
export function createProxyListener(options: ProxyListenerOptions) {
  const { grpc, clock, maxUnproved } = options;
  const injector = grpc.createConnectionInjector(ServerCredentials.createInsecure());
  const sockets = new Map<string, Socket>();
  const keep = (socket: Socket) => {
    const peer = peerOf(socket);
    sockets.set(peer, socket);
    socket.once("close", () => {
      if (sockets.get(peer) === socket) sockets.delete(peer);
    });
    socket.on("error", () => socket.destroy());
  };
  const byPod = createPodConnections(MAX_PER_POD);
  const terminator =
    options.tls &&
    createTlsTerminator({
      ...options.tls,
      maxUnproved,
      clock,
      onSecure(socket) {
        keep(socket);
        injector.injectConnection(socket);
      },
    });
  // A client that hangs up in a TLS handshake has nothing to read.
  const server: NetServer = createServer({ allowHalfOpen: terminator === undefined, noDelay: true }, (socket) => {
    keep(socket);
    if (terminator === undefined) injector.injectConnection(socket);
    else terminator.take(socket);
  });
  server.maxConnections = MAX_CONNECTIONS;
  return {
    /** Resolves with the bound port. @throws MeshError `LISTEN_FAILED` */
    listen: async () => (await listen(server, options.listen)).port,
    /** Destroys the connection with this peer, as gRPC names it. */
    cut: (peer: string) => void sockets.get(peer)?.destroy(),
    asked: (peer: string) => terminator?.asked(peer),
    /** A call on this connection came from this pod, which keeps only its newest connections. */
    proved(peer: string, pod: string): void {
      if (terminator === undefined) return;
      terminator.proved(peer);
      const socket = sockets.get(peer);
      if (socket !== undefined) byPod.keep(pod, socket);
    },
    refused: (peer: string) => terminator?.refused(peer),
    async close(graceMs: number): Promise<void> {
      const closed = server.listening ? new Promise<void>((resolve) => server.close(() => resolve())) : Promise.resolve();
      terminator?.close();
      injector.drain(graceMs);
      const forcedEnd = clock.after(graceMs, () => {
        for (const socket of sockets.values()) socket.destroy();
      });
      await closed;
      forcedEnd.cancel();
      grpc.forceShutdown();
    },
  };
}

export type PodSocket = Pick<Socket, "destroyed" | "destroy" | "once">;

/** Any pod of the cluster can have a token, and must not take all places. @param max for each pod */
export function createPodConnections(max: number): { keep(pod: string, socket: PodSocket): void } {
  const byPod = new Map<string, Set<PodSocket>>();
  return {
    keep(pod, socket) {
      const sockets = byPod.get(pod) ?? new Set();
      if (sockets.has(socket) || socket.destroyed) return;
      byPod.set(pod, sockets.add(socket));
      socket.once("close", () => {
        sockets.delete(socket);
        if (sockets.size === 0 && byPod.get(pod) === sockets) byPod.delete(pod);
      });
      for (const oldest of sockets) {
        if (sockets.size <= max) return;
        sockets.delete(oldest); // before its close is reported, because others are proved meanwhile
        oldest.destroy();
      }
    },
  };
}
