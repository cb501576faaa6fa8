// The health listener: /healthz, /readyz and /metrics over plain HTTP, reachable by the kubelet and Prometheus, and further
// pages for people who debug. Invariants: tells nothing that is secret; a page is for peers on the loopback only, which
// `kubectl port-forward` and `exec` are and the pod network is not, not even through a mesh's sidecar or a browser that was led
// here; and it is up before everything else, so that a probe gets an answer and not a refusal.
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import { isMeshError } from "./errors.ts";
import type { Runnable } from "./lifecycle.ts";
import { createListener, type ListenAddress } from "./listener.ts";
import type { Registry } from "./metrics.ts";

/**
 * Makes what a page shows, as JSON. The signal fires when the reader goes.
 * @throws MeshError `BAD_REQUEST` for a query that it cannot take
 */
export type Page = (query: URLSearchParams, signal: AbortSignal) => unknown;

export interface HealthServerOptions {
  readonly listen: ListenAddress;
  readonly registry: Registry;
  /** why the process is not ready; undefined if it is. */
  readonly notReady: () => string | undefined;
  /** What will end the readiness if nobody does anything; undefined if all is well. */
  readonly warning?: () => string | undefined;
  /** Further pages by path. */
  readonly pages?: Readonly<Record<string, Page>>;
}

export interface HealthServer extends Runnable {
  /** The port, once started. */
  readonly port: number;
}

type Route = (req: IncomingMessage, res: ServerResponse) => void;

/** Makes the server. */
export function createHealthServer({ listen, registry, notReady, warning, pages = {} }: HealthServerOptions): HealthServer {
  let port = 0;
  const routes: Readonly<Record<string, Route>> = {
    "/healthz": (_req, res) => text(res, 200, "ok"),
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
    const gone = new AbortController();
    res.once("close", () => gone.abort());
    render(page, new URL(req.url ?? "", "http://localhost").searchParams, gone.signal).then(
      (body) => text(res, 200, body, "application/json"),
      (error: unknown) => {
        if (isMeshError(error, "BAD_REQUEST")) text(res, 400, error.message);
        else text(res, 500, "making the page failed");
      },
    );
  };
}

async function render(page: Page, query: URLSearchParams, signal: AbortSignal): Promise<string> {
  return `${JSON.stringify(await page(query, signal), undefined, 2)}\n`;
}

/** What is looked at of a request. */
interface Asked {
  readonly headers: IncomingHttpHeaders;
  readonly socket: { readonly remoteAddress?: string | undefined };
}

// No other address of 127.0.0.0/8: Istio's sidecar hands on from 127.0.0.6 what came from the pod network.
const INSIDE: ReadonlySet<string | undefined> = new Set(["127.0.0.1", "::1", "::ffff:127.0.0.1"]);
// A browser asks for the name of the page that it shows, wherever that name leads.
const OWN_HOST = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i;

/** True if the reader is in the pod: by its address, by the host that it asks for, and if no proxy speaks for somebody else. */
export function isFromInside({ headers, socket }: Asked): boolean {
  if (!INSIDE.has(socket.remoteAddress) || !OWN_HOST.test(headers.host ?? "")) return false;
  return !Object.keys(headers).some((name) => name === "forwarded" || name === "via" || name.startsWith("x-forwarded-"));
}

function text(res: ServerResponse, status: number, body: string, contentType = "text/plain; charset=utf-8"): void {
  if (res.destroyed) return;
  res.writeHead(status, { "content-type": contentType, "content-length": Buffer.byteLength(body), "cache-control": "no-store" });
  res.end(body);
}
