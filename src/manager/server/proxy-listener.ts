// The sockets of the mesh server. They are ours and not gRPC's, since gRPC ends a stream only after
// everything written to it was read: a proxy that reads nothing would keep its buffers for ever. Invariant:
// after `close` no socket is left.
import { createServer, type Server as NetServer, type Socket } from "node:net";
import { type Server, ServerCredentials } from "@grpc/grpc-js";
import type { Clock } from "../../base/clock.ts";
import { MeshError } from "../../base/errors.ts";
import { peerOf } from "../../base/guard-connections.ts";
import { type ListenAddress, listenOptions } from "../../base/listener.ts";
import { formatAddress } from "../../base/settings.ts";
import type { MeshIdentity } from "../identity/mesh-identity.ts";
import { createTlsTerminator } from "./tls-terminator.ts";

export interface ProxyListener {
  /** Resolves with the bound port. @throws MeshError `LISTEN_FAILED` */
  listen(): Promise<number>;
  /** Destroys the connection with this peer, as gRPC names it. */
  cut(peer: string): void;
  /** A call has begun on this connection. Nothing without TLS. */
  asked(peer: string): void;
  /**
   * A call on this connection came from this pod. Of connections of which nothing is said, few are kept, and
   * not for long; of one pod's the newest are. Nothing without TLS.
   */
  proved(peer: string, pod: string): void;
  /**
   * A call on this connection came from nobody: unless another one proves more, it ends once the answer is
   * out. Nothing without TLS.
   */
  refused(peer: string): void;
  /** Waits for the connections to end, for `graceMs`. */
  close(graceMs: number): Promise<void>;
}

// Far more than proxies of one cluster: what is beyond finds no room for its stream either.
const MAX_CONNECTIONS = 8_192;

// A proxy has one connection for its stream and one for certificates; while it comes back, two of the one or
// the other. Any pod of the cluster can have a token, and one alone must not take the places of all.
const MAX_PER_POD = 8;

export interface ListenerTls {
  readonly identity: Pick<MeshIdentity, "serving" | "onChange">;
  /** Somebody was cut off who is no proxy. @param address without the port */
  readonly onRefused: (address: string, why: string) => void;
}

export function createProxyListener(options: {
  readonly grpc: Server;
  readonly listen: ListenAddress;
  /** Default: plain text. */
  readonly tls?: ListenerTls;
  readonly clock: Clock;
  /** See {@link createTlsTerminator}. */
  readonly maxUnproved?: number | undefined;
}): ProxyListener {
  const { grpc, clock } = options;
  // What gRPC gets is plain text, whoever takes TLS off it.
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
      ...(options.maxUnproved !== undefined && { maxUnproved: options.maxUnproved }),
      clock,
      onSecure(socket) {
        keep(socket);
        injector.injectConnection(socket);
      },
    });
  // Who hangs up in a TLS handshake is done.
  const server: NetServer = createServer({ allowHalfOpen: terminator === undefined, noDelay: true }, (socket) => {
    keep(socket);
    if (terminator === undefined) injector.injectConnection(socket);
    else terminator.take(socket);
  });
  server.maxConnections = MAX_CONNECTIONS;
  return {
    listen: () =>
      new Promise((resolve, reject) => {
        // Stays: a connection that could not be accepted later (no file descriptor left) must not end the
        // process.
        server.on("error", (cause) =>
          reject(new MeshError("LISTEN_FAILED", `listening for proxies on ${formatAddress(options.listen)}`, { cause })),
        );
        server.listen(listenOptions(options.listen), () => {
          const address = server.address();
          resolve(typeof address === "object" && address !== null ? address.port : 0);
        });
      }),
    cut: (peer) => sockets.get(peer)?.destroy(),
    asked: (peer) => terminator?.asked(peer),
    proved(peer, pod) {
      if (terminator === undefined) return;
      terminator.proved(peer);
      const socket = sockets.get(peer);
      if (socket !== undefined) byPod.keep(pod, socket);
    },
    refused: (peer) => terminator?.refused(peer),
    async close(graceMs) {
      const closed = server.listening ? new Promise<void>((resolve) => server.close(() => resolve())) : Promise.resolve();
      terminator?.close();
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

export type PodSocket = Pick<Socket, "destroyed" | "destroy" | "once">;

/**
 * Bounds the connections of one pod: any pod of the cluster can have a token, and one pod must not take all
 * places. The newest stay.
 * @param max for each pod
 */
export function createPodConnections(max: number): {
  keep(pod: string, socket: PodSocket): void;
} {
  const byPod = new Map<string, Set<PodSocket>>();
  return {
    keep(pod, socket) {
      const own = byPod.get(pod) ?? new Set();
      if (own.has(socket) || socket.destroyed) return;
      byPod.set(pod, own.add(socket));
      socket.once("close", () => {
        own.delete(socket);
        if (own.size === 0 && byPod.get(pod) === own) byPod.delete(pod);
      });
      for (const oldest of own) {
        if (own.size <= max) return;
        own.delete(oldest); // at once: it says only later that it is closed, and others are proved meanwhile
        oldest.destroy();
      }
    },
  };
}
