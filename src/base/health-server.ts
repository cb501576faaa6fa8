// The health listener: /healthz, /startupz, /readyz and /metrics over plain HTTP for the kubelet and
// Prometheus, and pages for debugging. Invariants: no response has secrets; pages are only for callers on the
// loopback (`kubectl port-forward`), not for the pod network, another mesh's sidecar or a browser.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createClientPace } from "./client-pace.ts";
import { type Clock, sleep, systemClock } from "./clock.ts";
import { clientAddress, createPlaces } from "./connection-places.ts";
import { isMeshError } from "./errors.ts";
import { GUARDED_SERVER, guardConnections } from "./guard-connections.ts";
import type { Runnable } from "./lifecycle.ts";
import { createListener, type ListenAddress } from "./listener.ts";
import type { Registry } from "./metrics.ts";

/** Its result is sent as JSON. The signal fires when the client is gone. @throws MeshError `BAD_REQUEST` */
export type Page = (query: URLSearchParams, signal: AbortSignal) => unknown;

export interface HealthServerOptions {
  readonly listen: ListenAddress;
  readonly registry: Registry;
  /** Why the process is not ready; undefined if it is. */
  readonly notReady: () => string | undefined;
  /** Why the process has not started: /startupz, for which other containers wait. Default: `notReady`. */
  readonly notStarted?: () => string | undefined;
  /** A problem that will make the process unready if it stays. */
  readonly warning?: () => string | undefined;
  readonly pages?: Readonly<Record<string, Page>>;
  readonly clock?: Clock;
}

export interface HealthServer extends Runnable {
  /** The port, once started. */
  readonly port: number;
}

/** Enough for a kubelet and a few Prometheus servers. Every pod of the cluster can connect. */
const MAX_CONNECTIONS = 64;
/**
 * Connections and requests of each address outside the pod. A kubelet probes each container about once a
 * second. The operator's requests run on the same event loop, on which a page of metrics takes milliseconds.
 */
const PACE = { perSecond: 20, burst: 64 };
/** Probes and scrapes have a few hundred bytes of headers. */
const MAX_HEADER_BYTES = 4 * 1024;
const REQUEST_MS = 10_000;
/** A kubelet opens a connection for each probe, and Prometheus comes only after this time. */
const KEEP_ALIVE_MS = 5_000;
/** How long a client may take to read an answer, which takes memory and a place. */
const ANSWER_MS = 10_000;
/** How long scrapes from outside get the same page, which can take tens of milliseconds of the event loop. */
const METRICS_MS = 1_000;
/** How often it is checked, while a start-up probe waits, whether the program has started. */
const START_LOOK_MS = 50;
const MAX_START_SECONDS = 60;
/** How often Node checks the timeouts of connections. */
const CHECK_MS = 1_000;

interface Answer {
  readonly status: number;
  readonly body: string;
  /** Default: plain text. */
  readonly type?: string;
}
type Route = (req: IncomingMessage, res: ServerResponse) => Answer | Promise<Answer>;

/** Start it before all other parts, so that a probe always gets an answer. */
export function createHealthServer(options: HealthServerOptions): HealthServer {
  const { listen, registry, notReady, notStarted = notReady, warning, pages = {}, clock = systemClock } = options;
  let port = 0;
  const shared = renderedOnce(() => registry.metrics(), clock);
  const routes: Readonly<Record<string, Route>> = {
    "/healthz": () => ({ status: 200, body: "ok" }),
    "/startupz": (req, res) => answerAtStart(notStarted, req, res, clock),
    "/readyz": () => {
      const why = notReady();
      const soon = warning?.();
      return { status: why === undefined ? 200 : 500, body: why ?? (soon === undefined ? "ok" : `ok, but ${soon}`) };
    },
    "/metrics": ({ socket }) =>
      (INSIDE.has(clientAddress(socket)) ? registry.metrics() : shared()).then(
        (body) => ({ status: 200, body, type: registry.contentType }),
        () => ({ status: 500, body: "collecting metrics failed" }),
      ),
    ...Object.fromEntries(Object.entries(pages).map(([path, page]) => [path, pageRoute(page)])),
  };
  const limits = {
    ...GUARDED_SERVER,
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: REQUEST_MS,
    requestTimeout: REQUEST_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: CHECK_MS,
  };
  const pace = createClientPace({ ...PACE, clock });
  const mayAsk = (address: string | undefined) => address !== undefined && (INSIDE.has(address) || pace.allow(address, 1));
  const serve = (req: IncomingMessage, res: ServerResponse) => {
    if (req.socket.destroyed) return;
    if (!mayAsk(clientAddress(req.socket))) {
      req.socket.destroy(); // an answer would cost as much as what was asked
      return;
    }
    void answerOf(req, res).then((answer) => send(res, answer, clock));
  };
  const answerOf = async (req: IncomingMessage, res: ServerResponse): Promise<Answer> => {
    const [path = ""] = (req.url ?? "").split("?");
    const route = Object.hasOwn(routes, path) ? routes[path] : undefined;
    if (route === undefined) return { status: 404, body: "not found" };
    if (req.method !== "GET" && req.method !== "HEAD") return { status: 405, body: "method not allowed" };
    return route(req, res);
  };
  const server = createServer(limits, serve);
  server.on("checkContinue", serve); // no page needs a body
  guardConnections(server, { places: createPlaces({ max: MAX_CONNECTIONS, clock }), clock, mayConnect: mayAsk });
  const listener = createListener(server, "connection");
  return {
    name: "health",
    get port() {
      return port;
    },
    async start() {
      ({ port } = await listener.listen(listen));
    },
    stop: () => listener.close(),
  };
}

/**
 * Answers as soon as the program has started, or with 500 after the time that the probe gives. A kubelet that gets
 * 500 writes a Warning Event and asks again a second later.
 */
async function answerAtStart(
  notStarted: () => string | undefined,
  req: IncomingMessage,
  res: ServerResponse,
  clock: Clock,
): Promise<Answer> {
  const endMs = clock.monotonicMs() + secondsOf(req) * 1_000;
  while (notStarted() !== undefined && clock.monotonicMs() < endMs && !res.destroyed) await sleep(clock, START_LOOK_MS);
  const why = notStarted();
  return { status: why === undefined ? 200 : 500, body: why ?? "ok" };
}

/** `seconds` of the query; 0 without it. */
function secondsOf({ url = "" }: IncomingMessage): number {
  const seconds = Number(new URL(url, "http://localhost").searchParams.get("seconds") ?? 0);
  return seconds > 0 ? Math.min(seconds, MAX_START_SECONDS) : 0;
}

function renderedOnce(render: () => Promise<string>, clock: Clock): () => Promise<string> {
  let page: Promise<string> | undefined;
  let renderedMs = 0;
  return () => {
    const nowMs = clock.monotonicMs();
    if (page === undefined || nowMs - renderedMs >= METRICS_MS) [page, renderedMs] = [render(), nowMs];
    return page;
  };
}

function pageRoute(page: Page): Route {
  return async (req, res) => {
    if (!isFromInside(req)) return { status: 403, body: "only from inside the pod: use kubectl port-forward" };
    const disconnected = new AbortController();
    res.once("close", () => disconnected.abort());
    try {
      const content = await page(new URL(req.url ?? "", "http://localhost").searchParams, disconnected.signal);
      return { status: 200, body: `${JSON.stringify(content, undefined, 2)}\n`, type: "application/json" };
    } catch (error) {
      if (isMeshError(error, "BAD_REQUEST")) return { status: 400, body: error.message };
      return { status: 500, body: "rendering the page failed" };
    }
  };
}

type Asked = Pick<IncomingMessage, "headers"> & { readonly socket: Parameters<typeof clientAddress>[0] };

// No other address of 127.0.0.0/8: Istio's sidecar forwards requests of the pod network from 127.0.0.6.
const INSIDE: ReadonlySet<string | undefined> = new Set(["127.0.0.1", "::1"]);
// A web page elsewhere can send a browser here under another host name.
const OWN_HOST = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i;

/** True for a loopback address that asks for a loopback host, with no proxy between them. */
export function isFromInside({ headers, socket }: Asked): boolean {
  if (!INSIDE.has(clientAddress(socket)) || !OWN_HOST.test(headers.host ?? "")) return false;
  return !Object.keys(headers).some((name) => name === "forwarded" || name === "via" || name.startsWith("x-forwarded-"));
}

function send(res: ServerResponse, { status, body, type = "text/plain; charset=utf-8" }: Answer, clock: Clock): void {
  if (res.destroyed) return;
  res.writeHead(status, { "content-type": type, "content-length": Buffer.byteLength(body), "cache-control": "no-store" });
  res.end(body);
  const timer = clock.after(ANSWER_MS, () => res.destroy());
  res.once("close", () => timer.cancel());
}
