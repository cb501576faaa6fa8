// TLS in front of gRPC. Ours and not gRPC's, so that the leaf can change under open streams, sockets can be counted, and whoever is no
// proxy is cut off early. Invariants: TLS 1.3 and HTTP/2 only; a bounded number of connections has not yet proved who it is, and each
// only for a while; and each that fails is told of once.
import type { Socket } from "node:net";
import { createServer, type TLSSocket } from "node:tls";
import type { Clock } from "../../base/clock.ts";
import type { MeshIdentity } from "../identity/mesh-identity.ts";

export interface TlsTerminator {
  /** Takes a connection over. */
  take(socket: Socket): void;
  /** A call on this connection came from a proxy. @param peer see {@link peerOf} */
  proved(peer: string): void;
  /** A call on this connection was refused: if no other has proved anything, it is cut off a moment later. */
  refused(peer: string): void;
  close(): void;
}

export interface TlsTerminatorOptions {
  readonly identity: Pick<MeshIdentity, "serving" | "onChange">;
  /** Takes what is said over TLS. */
  readonly onSecure: (socket: TLSSocket) => void;
  /** Somebody was cut off. @param address without the port */
  readonly onRefused: (address: string, why: string) => void;
  readonly clock: Clock;
}

interface Connection {
  readonly address: string;
  isSecure: boolean;
  /** Leaves time for an answer that is on its way. */
  endSoon(): void;
  settle(): void;
}

const HANDSHAKE_MS = 5_000;
// A proxy's first call carries its token; the rest is for a review that has to wait.
const PROOF_MS = 30_000;
const ANSWER_MS = 1_000;
// Some clusters show all pods of a node, or all pods, under one address: a thousand proxies may come from there at once.
const MAX_UNPROVED = 2_048;
const MAX_UNPROVED_PER_ADDRESS = 1_024;

/** The other side of a connection, as gRPC names it. */
export function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress}:${remotePort}`;
}

export function createTlsTerminator({ identity, onSecure, onRefused, clock }: TlsTerminatorOptions): TlsTerminator {
  const unproved = new Map<string, Connection>();
  const perAddress = new Map<string, number>();
  const server = createServer({ ALPNProtocols: ["h2"], handshakeTimeout: HANDSHAKE_MS });
  let hasLeaf = false;
  const load = () => {
    const { serving } = identity;
    if (serving === undefined) return;
    server.setSecureContext({ cert: serving.certPem, key: serving.keyPem, minVersion: "TLSv1.3" });
    hasLeaf = true;
  };
  load();
  const endListening = identity.onChange(load);

  function count(address: string, by: 1 | -1): void {
    const left = (perAddress.get(address) ?? 0) + by;
    if (left === 0) perAddress.delete(address);
    else perAddress.set(address, left);
  }

  function expectProof(socket: Socket): void {
    const { remoteAddress: address = "" } = socket;
    const peer = peerOf(socket);
    let isEnding = false;
    let timer = clock.after(PROOF_MS, () => {
      connection.settle();
      onRefused(address, `no call of a proxy within ${PROOF_MS / 1000} s`);
      socket.destroy();
    });
    const connection: Connection = {
      address,
      isSecure: false,
      endSoon() {
        if (isEnding) return;
        isEnding = true;
        timer.cancel();
        timer = clock.after(ANSWER_MS, () => {
          connection.settle();
          socket.destroy();
        });
      },
      settle() {
        if (unproved.get(peer) !== connection) return;
        unproved.delete(peer);
        timer.cancel();
        count(address, -1);
      },
    };
    count(address, 1);
    unproved.set(peer, connection);
    // Of those that hang up in the handshake, Node does not say where they came from.
    socket.once("close", () => {
      if (unproved.get(peer) === connection && !connection.isSecure) onRefused(address, "hung up in the TLS handshake");
      connection.settle();
    });
    server.emit("connection", socket);
  }

  server.on("tlsClientError", (error, socket) => {
    const connection = unproved.get(peerOf(socket));
    if (connection !== undefined) {
      connection.settle();
      onRefused(connection.address, whatFailed(error));
    }
    socket.destroy(); // after a timeout Node leaves it open
  });
  server.on("secureConnection", (socket) => {
    const connection = unproved.get(peerOf(socket));
    if (connection !== undefined) connection.isSecure = true;
    onSecure(socket);
  });
  return {
    take(socket) {
      const { remoteAddress: address = "" } = socket;
      if (socket.remoteAddress === undefined) {
        onRefused("", "hung up at once"); // the system does not say any more who it was
        socket.destroy();
        return;
      }
      const isBusy = unproved.size >= MAX_UNPROVED || (perAddress.get(address) ?? 0) >= MAX_UNPROVED_PER_ADDRESS;
      if (hasLeaf && !isBusy) return expectProof(socket);
      if (isBusy) onRefused(address, "too many connections have not said who they are");
      socket.destroy();
    },
    proved: (peer) => unproved.get(peer)?.settle(),
    refused: (peer) => unproved.get(peer)?.endSoon(),
    close() {
      endListening();
      for (const connection of [...unproved.values()]) connection.settle();
    },
  };
}

// OpenSSL's own words repeat addresses in memory and file names of its sources.
function whatFailed(error: Error & { readonly code?: string }): string {
  if (error.code === "ERR_TLS_HANDSHAKE_TIMEOUT") return `no TLS handshake within ${HANDSHAKE_MS / 1000} s`;
  const reason = "reason" in error && typeof error.reason === "string" ? error.reason : error.message;
  return error.code === "ERR_SSL_WRONG_VERSION_NUMBER" || error.code === "ERR_SSL_HTTP_REQUEST"
    ? `not TLS: ${reason}`
    : `TLS handshake failed: ${reason}`;
}
