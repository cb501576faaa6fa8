// Gives each connection of an HTTP or HTTPS server a place. Invariants: a client that sends no whole request
// head loses its place after twice FIRST_MS of a loop that is not blocked; Node makes at most two requests of
// the pipelined bytes of a client.
import type { Server as HttpServer, IncomingMessage, ServerResponse } from "node:http";
import type { Server as HttpsServer } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type Clock, createDeadline, type Deadline } from "./clock.ts";
import { CompactRequest } from "./compact-body.ts";
import { clientAddress, type Place, type Places } from "./connection-places.ts";

interface GuardOptions {
  readonly places: Places;
  readonly clock: Clock;
  /** False if the address has opened too many connections recently. Default: there is no such limit. */
  readonly mayConnect?: (address: string) => boolean;
  /** The time for the TLS handshake, and again for the head of the first request. Default 10,000. */
  readonly firstMs?: number;
}

/**
 * Long, since it includes the server's own delay: with 2 s, a hundred simultaneous honest handshakes failed
 * on a busy machine. It delays no other client, which can take such a place immediately.
 */
export const FIRST_MS = 10_000;

/** Honest clients send fewer. Node drops the others: 16 KiB of empty headers would become a megabyte. */
const MAX_HEADERS = 100;

/**
 * Requests of one connection without an answer. Honest clients wait for each answer; the second request is
 * for a client that sends it before Node reports that the answer has left.
 */
const MAX_UNANSWERED = 2;

interface Guest {
  readonly place: Place;
  readonly deadline: Deadline;
  /** Requests whose head has come. One that Node itself answers (no host) stays counted. */
  unanswered: number;
  /** Requests that have come as a whole and have no answer yet. */
  open: number;
}

export const GUARDED_SERVER = { IncomingMessage: CompactRequest };

/** For a server that is created with GUARDED_SERVER. Its owner ignores requests whose socket is destroyed. */
export function guardConnections(
  server: HttpServer | HttpsServer,
  { places, clock, mayConnect = () => true, firstMs = FIRST_MS }: GuardOptions,
): void {
  // A TLS socket has the same peer as the socket under it, and no public link to it.
  const guests = new Map<string, Guest>();
  const guestOf = new WeakMap<Duplex, Guest>();
  const admit = (socket: Socket) => {
    const address = clientAddress(socket);
    const mayStay = address !== undefined && mayConnect(address);
    const place = mayStay ? places.take(address, () => socket.destroy()) : undefined;
    if (place === undefined) {
      socket.destroy(); // before the handshake, which costs most
      return;
    }
    const guest: Guest = { place, deadline: createDeadline(clock, () => socket.destroy()), unanswered: 0, open: 0 };
    guest.deadline.set(firstMs);
    const peer = peerOf(socket);
    guests.set(peer, guest);
    socket.once("close", () => {
      guest.deadline.clear();
      place.leave();
      if (guests.get(peer) === guest) guests.delete(peer);
    });
  };
  /** Node has just given the connection its parser. */
  const follow = (socket: Socket) => {
    // Undefined if the client has reset the connection since.
    const guest = guests.get(peerOf(socket));
    if (guest !== undefined) guestOf.set(socket, guest);
    boundHeads(socket, (req) => {
      if (guest === undefined || guest.unanswered >= MAX_UNANSWERED) return "cut";
      if (req.headers["transfer-encoding"] !== undefined) return "no-length";
      guest.unanswered++;
      return "serve";
    });
  };
  const serve = (req: IncomingMessage, res: ServerResponse) => {
    const guest = guestOf.get(req.socket);
    if (guest === undefined) return;
    guest.deadline.clear();
    let isOpen = false;
    const begin = () => {
      if (isOpen || res.closed) return;
      isOpen = true;
      guest.open++;
      guest.place.become("busy");
    };
    res.once("close", () => {
      guest.unanswered--;
      if (isOpen && --guest.open === 0) guest.place.become("idle");
    });
    if (hasBody(req)) req.once("end", begin);
    else begin();
  };
  // Before Node's own listener, and before those of the owner.
  server.prependListener("connection", admit);
  // After Node's own listener.
  server.on("connection", follow);
  server.on("secureConnection", (socket: Socket) => {
    guests.get(peerOf(socket))?.deadline.set(firstMs);
    follow(socket);
  });
  server.prependListener("request", serve);
  server.prependListener("checkContinue", serve);
  server.maxHeadersCount = MAX_HEADERS;
}

export function peerOf({ remoteAddress, remotePort }: Pick<Socket, "remoteAddress" | "remotePort">): string {
  return `${remoteAddress}:${remotePort}`;
}

function hasBody({ headers }: IncomingMessage): boolean {
  return (headers["content-length"] ?? "0") !== "0";
}

/** "no-length": without a length a body may come in chunks of one byte, at a hundred times the cost. */
type HeadVerdict = "serve" | "cut" | "no-length";

type OnIncoming = (req: IncomingMessage, shouldKeepAlive: boolean) => number;

/** Tells Node's parser that the next bytes are not HTTP. */
const END_OF_HTTP = 2;
const REASON = "ctrlmesh: a request with a body needs a Content-Length\n";
const LENGTH_REQUIRED = `HTTP/1.1 411 Length Required\r\nconnection: close\r\ncontent-type: text/plain\r\ncontent-length: ${REASON.length}\r\n\r\n${REASON}`;

/**
 * Judges the head of each request before Node makes anything of it; after a refusal nothing more of the
 * connection is parsed. Node itself goes on with all that it has read, and makes 10 KB of each 26 bytes. It
 * has no public way to stop that, so this uses an internal one, which pipelines.test.ts holds.
 */
function boundHeads(socket: Socket, judge: (req: IncomingMessage) => HeadVerdict): void {
  const { parser } = socket as { readonly parser?: { onIncoming: OnIncoming } | null };
  if (!parser) return;
  const makeRequest = parser.onIncoming;
  parser.onIncoming = (req, shouldKeepAlive) => {
    const verdict = judge(req);
    if (verdict === "serve") return makeRequest(req, shouldKeepAlive);
    parser.onIncoming = () => END_OF_HTTP;
    if (verdict === "no-length") socket.end(LENGTH_REQUIRED, () => socket.destroy());
    else socket.destroy();
    return END_OF_HTTP;
  };
}
