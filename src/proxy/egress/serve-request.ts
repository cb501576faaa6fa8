// One request in plain HTTP, named by an absolute URL or by Mesh-Real-Endpoint, and its answer. Invariants: a
// body that breaks off breaks the other connection, so that it never looks complete; each request has a
// connection of its own, so nothing is sent twice and each address is checked.
import { type IncomingMessage, request, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { pipeline } from "node:stream/promises";
import { onAbort } from "../../base/abort.ts";
import type { Clock } from "../../base/clock.ts";
import { errorMessage } from "../../base/errors.ts";
import type { EgressTarget } from "../../policy/policy-request.ts";
import { HOP_BY_HOP, namedInConnection } from "../http/hop-by-hop.ts";
import { type AdmitDeps, admit, clusterNameOf, refusedAddresses } from "./admit.ts";
import type { Dial } from "./dial.ts";
import { EgressError, isServersFault } from "./egress-error.ts";
import { REAL_ENDPOINT, targetOf } from "./target.ts";
import type { Visit } from "./visits.ts";

export interface RequestDeps extends AdmitDeps {
  readonly dial: Dial;
  readonly clock: Clock;
  /** The longest silence of the server. */
  readonly answerMs: number;
}

const MAX_HEADER_BYTES = 64 * 1024;
/** `Host` is written anew for the target, and Node has already answered `Expect`. */
const FOR_THE_PROXY = new Set(["host", "expect", REAL_ENDPOINT]);

/** @throws EgressError before the answer has begun; later the connection breaks */
export async function serveRequest(req: IncomingMessage, res: ServerResponse, deps: RequestDeps, visit: Visit): Promise<void> {
  const { clock, dial } = deps;
  const { method = "GET" } = req;
  const target = targetOf(method, req.url ?? "", req.headers);
  visit.goesTo({ host: target.host, port: target.port, path: target.path }, clusterNameOf(target, deps.session));
  // HTTP/1.0 knows no chunks: there a body that broke off would look complete.
  if (req.httpVersion !== "1.1") throw new EgressError("bad-request", "ctrlmesh egress: use HTTP/1.1");
  const coding = req.headers["transfer-encoding"] ?? "chunked";
  if (coding.toLowerCase() !== "chunked") {
    throw new EgressError("bad-request", "ctrlmesh egress: of the transfer codings only chunked passes");
  }
  if (/websocket/i.test(req.headers.upgrade ?? "")) {
    throw new EgressError("upgrade", "ctrlmesh egress: WebSockets pass only through a tunnel: use wss, or CONNECT");
  }
  const { permit } = await admit(method, target, deps, visit);
  const startedMs = clock.monotonicMs();
  try {
    const socket = await dial.connect(target, visit.signal, refusedAddresses(method, target, deps));
    visit.notes.bytes = () => socket.bytesRead;
    onAbort(visit.signal, () => socket.destroy());
    visit.noteSent();
    const answer = await send(req, socket, target, deps);
    const status = answer.statusCode ?? 502;
    beginAnswer(res, answer, status, target);
    permit.settle({ kind: "answered", status, tookMs: clock.monotonicMs() - startedMs });
    visit.decided("allowed");
    visit.notes.code = status;
    // If the client or the server has left, `pipeline` has destroyed both sides.
    await pipeline(answer, res).catch(() => undefined);
  } catch (error) {
    // A client that leaves breaks the connection off, which says nothing of a server that was not late.
    if (visit.signal.aborted) permit.settle({ kind: "abandoned", afterMs: clock.monotonicMs() - startedMs });
    else if (isServersFault(error)) permit.settle({ kind: "failed" });
    throw error;
  } finally {
    permit.release();
  }
}

/** @throws EgressError if HTTP does not permit the head that Node has read */
function beginAnswer(res: ServerResponse, answer: IncomingMessage, status: number, { host, port }: EgressTarget): void {
  try {
    res.writeHead(status, answer.statusMessage ?? "", passedOn(answer.rawHeaders));
  } catch (cause) {
    const message = `ctrlmesh egress: ${host}:${port} has sent an invalid answer (${errorMessage(cause)})`;
    throw new EgressError("unreachable", message, { cause });
  }
}

/** Resolves with the head of the answer. */
function send(req: IncomingMessage, socket: Socket, target: EgressTarget, { answerMs }: RequestDeps): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const where = `ctrlmesh egress: ${target.host}:${target.port}`;
    const sent = request({
      createConnection: () => socket,
      method: req.method ?? "GET",
      path: `${target.path ?? "/"}${target.query}`,
      headers: requestHeaders(req.rawHeaders, target),
      maxHeaderSize: MAX_HEADER_BYTES,
      setHost: false,
    });
    socket.setTimeout(answerMs, () => {
      socket.destroy(new EgressError("timeout", `${where} has sent nothing for ${answerMs / 1_000} s`));
    });
    sent.once("response", resolve);
    sent.on("error", (cause) => {
      reject(
        cause instanceof EgressError ? cause : new EgressError("unreachable", `${where}: ${errorMessage(cause)}`, { cause }),
      );
    });
    sent.once("close", () => {
      reject(new EgressError("unreachable", `${where} has closed the connection without an answer`));
      req.unpipe(sent).resume(); // the rest is read and dropped, so that the client sees the answer
    });
    // Not `pipeline`: a server may answer early and close, which must not close the client's connection.
    req.pipe(sent);
  });
}

/** Flat lists of names and values, which keep order, case and repetitions. */
export function requestHeaders(raw: readonly string[], target: EgressTarget): string[] {
  const out = ["Host", hostHeader(target), ...passedOn(raw, FOR_THE_PROXY)];
  const names = out.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase());
  // Node frames a body by itself for some methods only.
  const isChunked = raw.some((name, at) => at % 2 === 0 && name.toLowerCase() === "transfer-encoding");
  return isChunked && !names.includes("content-length") ? [...out, "Transfer-Encoding", "chunked"] : out;
}

function hostHeader({ scheme, host, port }: EgressTarget): string {
  const name = host.includes(":") ? `[${host}]` : host;
  return port === (scheme === "https" ? 443 : 80) ? name : `${name}:${port}`;
}

export function passedOn(raw: readonly string[], dropped: ReadonlySet<string> = new Set()): string[] {
  const pairs = raw.flatMap((name, at) => (at % 2 === 0 ? [{ name, lower: name.toLowerCase(), value: raw[at + 1] ?? "" }] : []));
  const removed = new Set(pairs.flatMap(({ lower, value }) => (lower === "connection" ? namedInConnection(value) : [])));
  return pairs.flatMap(({ name, lower, value }) =>
    HOP_BY_HOP.has(lower) || dropped.has(lower) || removed.has(lower) ? [] : [name, value],
  );
}
