// TLS in front of gRPC, whose own TLS could neither change the leaf under open streams nor cut off strangers
// early. Invariants: TLS 1.3 and HTTP/2 only; few connections have not yet proved who they are, and each only
// for a while; each failure is reported once.
import type { Socket } from "node:net";
import { createServer, type TLSSocket } from "node:tls";
import { createClientPace } from "../../base/client-pace.ts";
import { type Clock, createDeadline } from "../../base/clock.ts";
import { clientAddress, createPlaces } from "../../base/connection-places.ts";
import { FIRST_MS, peerOf } from "../../base/guard-connections.ts";
import type { MeshIdentity } from "../identity/mesh-identity.ts";

export interface TlsTerminatorOptions {
  readonly identity: Pick<MeshIdentity, "serving" | "onChange">;
  readonly onSecure: (socket: TLSSocket) => void;
  /** A connection is cut off. @param address without the port */
  readonly onRefused: (address: string, why: string) => void;
  readonly clock: Clock;
  /** The maximum number of connections that have not proved who they are; default 256. */
  readonly maxUnproved?: number | undefined;
}

interface Connection {
  readonly address: string;
  readonly socket: Socket;
  isSecure: boolean;
  /** A call has begun, which carries a proxy's token. */
  hasAsked: boolean;
  /** The client's time starts again. @param why the reported reason when it is over, if any */
  expect(ms: number, why?: string): void;
  /** Leaves time for an answer that is on its way. */
  endSoon(): void;
  prove(): void;
  end(why: string | undefined): void;
  /** Ends the wait for a proof. */
  settle(): void;
}

// The review of a token waits while the API server does not answer.
const PROOF_MS = 30_000;
const ANSWER_MS = 1_000;
// Each connection holds up to 300 KiB: two calls, each with 64 KiB of headers and 64 KiB of unread data. If
// 1,000 proxies reconnect together, a proxy that loses its place tries again within three seconds.
const MAX_UNPROVED = 256;
// A token and the beginning of a registration, for which HTTP/2 gives 64 KiB. More, in frames of one byte,
// would take a second of the event loop.
const MAX_UNPROVED_BYTES = 128 * 1024;
const CHECK_MS = 100;
const TOO_MUCH = `more than ${MAX_UNPROVED_BYTES} bytes before it has said who it is`;
// Some clusters show all pods under one address, from which hundreds of proxies may connect at once.
const PROVED_SHARES = 32;
// The limit for one address, from which a thousand proxies may reconnect within 15 s.
const HANDSHAKES_PER_SECOND = 48;
const HANDSHAKES_AT_ONCE = 384;
const TOO_MANY = "too many connections have not said who they are";
const TOO_FAST = `more than ${HANDSHAKES_PER_SECOND} TLS handshakes a second from this address`;

export function createTlsTerminator(options: TlsTerminatorOptions) {
  const { identity, onSecure, onRefused, clock, maxUnproved = MAX_UNPROVED } = options;
  const unproved = new Map<string, Connection>();
  const places = createPlaces({ max: maxUnproved, provedShares: PROVED_SHARES, clock });
  const handshakes = createClientPace({ perSecond: HANDSHAKES_PER_SECOND, burst: HANDSHAKES_AT_ONCE, clock });
  const server = createServer({ ALPNProtocols: ["h2"] });
  let hasLeaf = false;
  const load = () => {
    const { serving } = identity;
    if (serving === undefined) return;
    server.setSecureContext({ cert: serving.certPem, key: serving.keyPem, minVersion: "TLSv1.3" });
    hasLeaf = true;
  };
  load();
  let isChecking = false;
  const check = () => {
    isChecking = unproved.size > 0;
    if (!isChecking) return;
    for (const connection of [...unproved.values()]) {
      if (connection.socket.bytesRead > MAX_UNPROVED_BYTES) connection.end(TOO_MUCH);
    }
    clock.after(CHECK_MS, check);
  };
  const endListening = identity.onChange(load);

  function expectProof(socket: Socket, address: string): void {
    const peer = peerOf(socket);
    let whyOver: string | undefined;
    const end = (why: string | undefined) => {
      connection.settle();
      if (why !== undefined) onRefused(address, why);
      socket.destroy();
    };
    const mayConnect = handshakes.allow(address, 1);
    const place = mayConnect ? places.take(address, () => end(TOO_MANY)) : undefined;
    if (place === undefined) {
      onRefused(address, mayConnect ? TOO_MANY : TOO_FAST);
      socket.destroy();
      return;
    }
    const deadline = createDeadline(clock, () => end(whyOver));
    let isEnding = false;
    const connection: Connection = {
      address,
      socket,
      isSecure: false,
      hasAsked: false,
      expect(ms, why) {
        if (isEnding || unproved.get(peer) !== connection) return;
        whyOver = why;
        deadline.set(ms);
      },
      endSoon() {
        connection.expect(ANSWER_MS);
        isEnding = true;
      },
      prove() {
        place.noteProof();
        connection.settle();
      },
      end,
      settle() {
        deadline.clear();
        place.leave();
        if (unproved.get(peer) === connection) unproved.delete(peer);
      },
    };
    unproved.set(peer, connection);
    if (!isChecking) check();
    connection.expect(FIRST_MS, `no TLS handshake within ${FIRST_MS / 1000} s`);
    // Node does not report the address of a client that hangs up in the handshake.
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
    socket.destroy();
  });
  server.on("secureConnection", (socket) => {
    const connection = unproved.get(peerOf(socket));
    if (connection !== undefined) {
      connection.isSecure = true;
      connection.expect(FIRST_MS, `no call within ${FIRST_MS / 1000} s`);
    }
    onSecure(socket);
  });
  return {
    take(socket: Socket): void {
      const address = clientAddress(socket);
      if (address === undefined) {
        onRefused("", "hung up at once"); // the system no longer knows the address
        socket.destroy();
      } else if (hasLeaf) expectProof(socket, address);
      else socket.destroy();
    },
    /** A call has begun on this connection. @param peer see {@link peerOf} */
    asked(peer: string): void {
      const connection = unproved.get(peer);
      if (connection === undefined || connection.hasAsked) return;
      connection.hasAsked = true;
      connection.expect(PROOF_MS, `no call of a proxy within ${PROOF_MS / 1000} s`);
    },
    proved: (peer: string): void => unproved.get(peer)?.prove(),
    /**
     * A call on this connection was refused. The connection is soon cut off, unless another call proves a pod.
     */
    refused: (peer: string): void => unproved.get(peer)?.endSoon(),
    close(): void {
      endListening();
      for (const connection of [...unproved.values()]) connection.settle();
    },
  };
}

// OpenSSL's own message repeats addresses in memory and file names of its sources.
function whatFailed(error: Error & { readonly code?: string }): string {
  const reason = "reason" in error && typeof error.reason === "string" ? error.reason : error.message;
  return error.code === "ERR_SSL_WRONG_VERSION_NUMBER" || error.code === "ERR_SSL_HTTP_REQUEST"
    ? `not TLS: ${reason}`
    : `TLS handshake failed: ${reason}`;
}
