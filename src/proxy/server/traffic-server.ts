// The listener that the operator talks to: HTTPS, HTTP/1.1 (client-go falls back to it by ALPN), loopback by default.
// Turns each request into a RawCall for the pipeline and its Reply into bytes, and drains at the end. Invariant: no timeout
// of Node's cuts a watch; a call's signal fires as soon as its client is gone.
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Clock } from "../../base/clock.ts";
import { MeshError } from "../../base/errors.ts";
import type { Runnable } from "../../base/lifecycle.ts";
import type { Logger } from "../../base/log.ts";
import { parseRequestInfo } from "../../kube/request-info.ts";
import type { RawCall, RawHandler, Reply } from "../pipeline/handler.ts";
import { isLongRunning } from "../upstream/pools.ts";
import { createListener, type ListenAddress } from "./listener.ts";
import { hasBody, requestSource } from "./request-source.ts";
import { sendReply } from "./send-reply.ts";
import type { ServingCertificate, TlsPair } from "./serving-certificate.ts";
import type { Tunnel } from "./tunnel.ts";

export interface TrafficServerOptions {
  readonly listen: ListenAddress;
  readonly certificate: ServingCertificate;
  readonly pipeline: RawHandler;
  readonly tunnel: Tunnel;
  readonly clock: Clock;
  readonly log: Logger;
  /** How long requests that have an end may take to reach it at shutdown. Default 8,000. */
  readonly drainMs?: number;
}

export interface TrafficServer extends Runnable {
  /** True while new connections are accepted. */
  readonly listening: boolean;
  /** The port, once started. */
  readonly port: number;
}

/** Enough for a query that names many namespaces, and for large bearer tokens. */
const MAX_HEADER_BYTES = 128 * 1024;
const HEADERS_TIMEOUT_MS = 30_000;
/** Longer than client-go keeps an idle connection (90 s), so that it closes first. */
const KEEP_ALIVE_MS = 120_000;
const UPGRADED_SUBRESOURCES = new Set(["exec", "attach", "portforward", "proxy"]);

interface InFlight {
  readonly call: RawCall;
  readonly abort: AbortController;
}

/** Makes the server. */
export function createTrafficServer(options: TrafficServerOptions): TrafficServer {
  const { certificate, pipeline, tunnel, clock, log, drainMs = 8_000 } = options;
  const inFlight = new Set<InFlight>();
  let draining: (() => void) | undefined;
  let port = 0;
  let listening = false;

  const server: Server = createServer({
    ALPNProtocols: ["http/1.1"],
    minVersion: "TLSv1.2",
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE_MS,
    noDelay: true,
    shouldUpgradeCallback: (req: IncomingMessage) => upgradeOf(req) !== undefined,
  });
  const listener = createListener(server, "secureConnection");
  const useCertificate = (now: TlsPair) => server.setSecureContext({ ...now, minVersion: "TLSv1.2" });
  const unsubscribe = certificate.onChange(useCertificate);

  const begin = (req: IncomingMessage, body: RawCall["body"], upgrade?: string): InFlight => {
    const abort = new AbortController();
    const call: RawCall = {
      method: req.method ?? "GET",
      target: req.url ?? "",
      headers: headersOf(req),
      body,
      signal: abort.signal,
      record: { decision: "forwarded", lock: false },
      ...(upgrade === undefined ? {} : { upgrade }),
    };
    const entry = { call, abort };
    inFlight.add(entry);
    return entry;
  };
  const end = (entry: InFlight) => {
    inFlight.delete(entry);
    draining?.();
  };

  const serve = async (req: IncomingMessage, res: ServerResponse, expectsContinue: boolean) => {
    const source = hasBody(req) ? requestSource(req, () => expectsContinue && res.writeContinue()) : null;
    const entry = begin(req, source);
    res.once("close", () => {
      if (!res.writableFinished) entry.abort.abort(new MeshError("ABORTED", "serving a request: the client is gone"));
      end(entry);
    });
    const reply = await pipeline(entry.call);
    if (draining !== undefined) res.shouldKeepAlive = false;
    sendReply(res, reply);
  };

  const serveUpgrade = async (req: IncomingMessage, socket: Duplex, head: Buffer) => {
    const entry = begin(req, null, upgradeOf(req));
    socket.once("close", () => {
      entry.abort.abort(new MeshError("ABORTED", "serving an upgrade: the client is gone"));
      end(entry);
    });
    const reply = await pipeline(entry.call);
    if (reply.tunnel !== undefined) await tunnel(reply.tunnel, req, socket, head);
    else refuseUpgrade(req, socket as Socket, reply);
  };

  // `rescue` has answered everything that a layer can throw; what is left is a broken reply, of which nothing was sent.
  const guarded = (work: Promise<void>, socket: Duplex) => {
    work.catch((error: unknown) => {
      log.error({ err: error }, "serving a request failed");
      socket.destroy();
    });
  };
  server.on("request", (req, res) => guarded(serve(req, res, false), req.socket));
  server.on("checkContinue", (req, res) => guarded(serve(req, res, true), req.socket));
  server.on("upgrade", (req, socket, head) => {
    socket.on("error", () => undefined); // Node takes its own listener away; the close event says the same
    guarded(serveUpgrade(req, socket, head), socket);
  });

  const drained = () => {
    const isShort = ({ call }: InFlight) => call.record.info === undefined || !isLongRunning(call.record.info);
    return new Promise<void>((resolve) => {
      const check = () => {
        if ([...inFlight].some(isShort)) return;
        timer.cancel();
        resolve();
      };
      const timer = clock.after(drainMs, resolve);
      draining = check;
      check();
    });
  };

  return {
    name: "traffic",
    get listening() {
      return listening;
    },
    get port() {
      return port;
    },
    async start() {
      useCertificate(certificate.current());
      ({ port } = await listener.listen(options.listen));
      listening = true;
    },
    async stop() {
      listening = false;
      unsubscribe();
      draining = () => undefined;
      listener.stopAccepting();
      await drained();
      const shutdown = new MeshError("ABORTED", "draining: the proxy is shutting down");
      for (const { abort } of [...inFlight]) abort.abort(shutdown);
      await listener.close();
    },
  };
}

/**
 * The protocol of a request that must be served as a tunnel. Every other upgrade is ignored, as RFC 9110 allows: a watch
 * over WebSocket is so answered by the filtered HTTP stream, and a client that cannot read that fails or falls back.
 */
function upgradeOf({ method = "GET", url = "", headers }: IncomingMessage): string | undefined {
  const { upgrade } = headers;
  if (upgrade === undefined || !/^(websocket|spdy\/3\.1)$/i.test(upgrade)) return undefined;
  try {
    const info = parseRequestInfo(method, url);
    if (info.kind !== "resource" || !UPGRADED_SUBRESOURCES.has(info.subresource.split("/")[0] ?? "")) return undefined;
    return upgrade;
  } catch {
    return undefined; // the pipeline answers 400
  }
}

// Node joins repeated headers with commas, but two Impersonate-Group lines are two groups: those keep their lines.
function headersOf(req: IncomingMessage): IncomingHttpHeaders {
  const { headers } = req;
  if (headers["impersonate-user"] === undefined) return headers;
  const out: IncomingHttpHeaders = { ...headers };
  for (const [name, values] of Object.entries(req.headersDistinct)) {
    if (name.startsWith("impersonate-") && values !== undefined) out[name] = values;
  }
  return out;
}

function refuseUpgrade(req: IncomingMessage, socket: Socket, reply: Reply): void {
  const res = new ServerResponse(req);
  res.shouldKeepAlive = false;
  res.assignSocket(socket);
  res.once("finish", () => socket.destroySoon());
  sendReply(res, reply);
}
