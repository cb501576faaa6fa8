// The health listener: /healthz, /startupz, /readyz and /metrics over plain HTTP for the kubelet and Prometheus, and pages for debugging.
// Invariant: no response has secrets; pages are for callers on the loopback only (`kubectl port-forward` and `exec`), not for the
// pod network, a sidecar of another mesh or a browser. The server starts before all other parts, so that a probe always gets a
// response.
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import { isMeshError } from "./errors.ts";
import type { Runnable } from "./lifecycle.ts";
import { createListener, type ListenAddress } from "./listener.ts";
import type { Registry } from "./metrics.ts";

/**
 * Returns the content of a page, which is sent as JSON. The signal fires when the client disconnects.
 * @throws MeshError `BAD_REQUEST` for an invalid query
 */
export type Page = (query: URLSearchParams, signal: AbortSignal) => unknown;

export interface HealthServerOptions {
  readonly listen: ListenAddress;
  readonly registry: Registry;
  /** Why the process is not ready; undefined if it is ready. */
  readonly notReady: () => string | undefined;
  /** Why the process has not started: /startupz, for which other containers wait. Default: `notReady`. */
  readonly notStarted?: () => string | undefined;
  /** A problem that will make the process unready if it stays; undefined if there is none. */
  readonly warning?: () => string | undefined;
  /** Further pages by path. */
  readonly pages?: Readonly<Record<string, Page>>;
}

export interface HealthServer extends Runnable {
  /** The port, once started. */
  readonly port: number;
}

type Route = (req: IncomingMessage, res: ServerResponse) => void;

/** Creates the server. */
export function createHealthServer(options: HealthServerOptions): HealthServer {
  const { listen, registry, notReady, notStarted = notReady, warning, pages = {} } = options;
  let port = 0;
  const routes: Readonly<Record<string, Route>> = {
    "/healthz": (_req, res) => text(res, 200, "ok"),
    "/startupz": (_req, res) => {
      const why = notStarted();
      text(res, why === undefined ? 200 : 500, why ?? "ok");
    },
    "/readyz": (_req, res) => {
      const why = notReady();
      const soon = warning?.();
      text(res, why === undefined ? 200 : 500, why ?? (soon === undefined ? "ok" : `ok, but ${soon}`));
    },
    "/metrics": (_req, res) => {
      registry.metrics().then(
        (body) => text(res, 200, body, registry.contentType),
        () => text(res, 500, "collecting metrics failed"),
      );
    },
    ...Object.fromEntries(Object.entries(pages).map(([path, page]) => [path, pageRoute(page)])),
  };
  const server = createServer({ requestTimeout: 10_000, keepAliveTimeout: 65_000 }, (req, res) => {
    const [path = ""] = (req.url ?? "").split("?");
    const route = Object.hasOwn(routes, path) ? routes[path] : undefined;
    if (route === undefined) text(res, 404, "not found");
    else if (req.method !== "GET" && req.method !== "HEAD") text(res, 405, "method not allowed");
    else route(req, res);
  });
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

function pageRoute(page: Page): Route {
  return (req, res) => {
    if (!isFromInside(req)) {
      text(res, 403, "only from inside the pod: use kubectl port-forward");
      return;
    }
    const disconnected = new AbortController();
    res.once("close", () => disconnected.abort());
    render(page, new URL(req.url ?? "", "http://localhost").searchParams, disconnected.signal).then(
      (body) => text(res, 200, body, "application/json"),
      (error: unknown) => {
        if (isMeshError(error, "BAD_REQUEST")) text(res, 400, error.message);
        else text(res, 500, "rendering the page failed");
      },
    );
  };
}

async function render(page: Page, query: URLSearchParams, signal: AbortSignal): Promise<string> {
  return `${JSON.stringify(await page(query, signal), undefined, 2)}\n`;
}

/** The parts of a request that isFromInside checks. */
interface Asked {
  readonly headers: IncomingHttpHeaders;
  readonly socket: { readonly remoteAddress?: string | undefined };
}

// No other address of 127.0.0.0/8: Istio's sidecar forwards requests of the pod network from 127.0.0.6.
const INSIDE: ReadonlySet<string | undefined> = new Set(["127.0.0.1", "::1", "::ffff:127.0.0.1"]);
// A web page elsewhere can send a browser here under another host name.
const OWN_HOST = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i;

/** True if the client is in the pod: it has a loopback address, asks for a loopback host, and no proxy forwards the request. */
export function isFromInside({ headers, socket }: Asked): boolean {
  if (!INSIDE.has(socket.remoteAddress) || !OWN_HOST.test(headers.host ?? "")) return false;
  return !Object.keys(headers).some((name) => name === "forwarded" || name === "via" || name.startsWith("x-forwarded-"));
}

function text(res: ServerResponse, status: number, body: string, contentType = "text/plain; charset=utf-8"): void {
  if (res.destroyed) return;
  res.writeHead(status, { "content-type": contentType, "content-length": Buffer.byteLength(body), "cache-control": "no-store" });
  res.end(body);
}
