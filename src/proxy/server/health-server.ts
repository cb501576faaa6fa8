// The health listener: /healthz, /readyz and /metrics over plain HTTP, reachable by the kubelet and Prometheus. Invariant:
// tells nothing that is secret, and is up before everything else, so that a probe gets an answer and not a refusal.
import { createServer, type ServerResponse } from "node:http";
import type { Runnable } from "../../base/lifecycle.ts";
import type { Registry } from "../../base/metrics.ts";
import { createListener, type ListenAddress } from "./listener.ts";

export interface HealthServerOptions {
  readonly listen: ListenAddress;
  readonly registry: Registry;
  /** Why the proxy is not ready; undefined if it is. */
  readonly notReady: () => string | undefined;
}

export interface HealthServer extends Runnable {
  /** The port, once started. */
  readonly port: number;
}

/** Makes the server. */
export function createHealthServer({ listen, registry, notReady }: HealthServerOptions): HealthServer {
  let port = 0;
  const routes: Readonly<Record<string, (res: ServerResponse) => void>> = {
    "/healthz": (res) => text(res, 200, "ok"),
    "/readyz": (res) => {
      const why = notReady();
      text(res, why === undefined ? 200 : 500, why ?? "ok");
    },
    "/metrics": (res) => {
      registry.metrics().then(
        (body) => text(res, 200, body, registry.contentType),
        () => text(res, 500, "collecting metrics failed"),
      );
    },
  };
  const server = createServer({ requestTimeout: 10_000, keepAliveTimeout: 65_000 }, (req, res) => {
    const [path = ""] = (req.url ?? "").split("?");
    const route = Object.hasOwn(routes, path) ? routes[path] : undefined;
    if (route === undefined) text(res, 404, "not found");
    else if (req.method !== "GET" && req.method !== "HEAD") text(res, 405, "method not allowed");
    else route(res);
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

function text(res: ServerResponse, status: number, body: string, contentType = "text/plain; charset=utf-8"): void {
  res.writeHead(status, { "content-type": contentType, "content-length": Buffer.byteLength(body), "cache-control": "no-store" });
  res.end(body);
}
