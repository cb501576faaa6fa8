// Binds the places of connections to an HTTP or HTTPS server. Invariants: a client that sends no whole head of a request loses its place after 20 s at
// most (two times FIRST_MS), and time in which the loop is blocked does not count. Whatever a client sends at once, Node answers three requests of it at most.
// The health listener, the manager's webhooks and the listener for an operator's webhooks use it.
import type { Server as HttpServer, IncomingMessage, ServerResponse } from "node:http";
import type { Server as HttpsServer } from "node:https";
import type { Socket } from "node:net";
import type { Clock } from "./clock.ts";
import { CompactRequest } from "./compact-body.ts";
import { clientAddress, type Place, type Places } from "./connection-places.ts";
import { createDeadline, type Deadline } from "./deadline.ts";

export interface GuardOptions {
  readonly places: Places;
  readonly clock: Clock;
  /** False: this address has opened too many connections of late. Default: there is no such limit. */
  readonly mayConnect?: (address: string) => boolean;
  /** For the TLS handshake, and then for the head of the first request. Default 10,000 each. */
  readonly firstMs?: number;
}

/**
 * Long, since it also counts the server's own slowness: with 2 s, a hundred honest handshakes at once failed on a busy machine. No other client waits for
 * this time: a place that somebody needs is free at once.
 */
export const FIRST_MS = 10_000;

/** A client has few headers. Node drops the others; without this bound 16 KiB of empty ones would become a megabyte. */
export const MAX_HEADERS = 100;

/**
 * Requests of one connection that have no answer yet. API servers, peers and kubelets wait for each answer before they send the next request; the second
 * is for one that comes before Node has told that the answer has left. Requests in a pipeline are parsed as they come, and take 10 KB for each 30 bytes.
 */
const MAX_UNANSWERED = 2;

/** A connection with its place. */
interface Guest {
  readonly place: Place;
  readonly deadline: Deadline;
  /** Requests whose head has come, and that have no answer yet. */
  unanswered: number;
  /** Requests that have come as a whole and have no answer yet. */
  open: number;
}

/** Options of a server whose clients may be anybody. With the check of `Host` Node itself would answer, and count, each request without it. */
export const GUARDED_SERVER = { IncomingMessage: CompactRequest, requireHostHeader: false };

/**
 * The server must be created with GUARDED_SERVER. Its owner leaves requests alone whose socket is destroyed: several may come in the moment in which a
 * connection is cut.
 */
export function guardConnections(
  server: HttpServer | HttpsServer,
  { places, clock, mayConnect = () => true, firstMs = FIRST_MS }: GuardOptions,
): void {
  // A TLS socket has the same peer as the socket under it, and no public link to it.
  const guests = new Map<string, Guest>();
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
  const serve = (req: IncomingMessage, res: ServerResponse) => {
    // Undefined if the client has reset the connection behind its requests.
    const guest = guests.get(peerOf(req.socket));
    if (guest === undefined || guest.unanswered >= MAX_UNANSWERED) return cut(req);
    guest.unanswered++;
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
  server.on("secureConnection", (socket: Socket) => guests.get(peerOf(socket))?.deadline.set(firstMs));
  server.prependListener("request", serve);
  server.prependListener("checkContinue", serve);
  server.on("checkExpectation", cut); // Node would answer each request of a pipeline
  server.maxHeadersCount = MAX_HEADERS;
}

/**
 * Ends the connection. Node has read up to 64 KiB of it and goes on parsing them after the end: it would make thousands of requests and responses, of 10 KB
 * each. So its parser is told to forget what else comes. Node has no public way to do that (pipelines.test.ts holds this one).
 */
function cut({ socket }: IncomingMessage): void {
  const { parser } = socket as Socket & { readonly parser?: { onIncoming: () => number } | null };
  if (parser) parser.onIncoming = () => 0;
  socket.destroy();
}

/** The other side of a connection. */
export function peerOf({ remoteAddress, remotePort }: Pick<Socket, "remoteAddress" | "remotePort">): string {
  return `${remoteAddress}:${remotePort}`;
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || (headers["content-length"] ?? "0") !== "0";
}
