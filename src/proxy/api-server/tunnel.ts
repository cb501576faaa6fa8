// Connects a client's socket with the API server's after an upgrade, as raw bytes in both directions (SPDY
// and WebSocket of exec, attach and port-forward). Invariants: target, method and headers are those that the
// layers let through, never the client's own; both sockets end together, and when the call's signal fires.
import type { ClientRequest } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { onAbort } from "../../base/abort.ts";
import type { Logger } from "../../base/log.ts";
import type { CallSignal } from "../http/call-signal.ts";
import type { HttpCall, Tunnel } from "../http/handler.ts";
import { DEFAULT_LIVENESS, keepAliveOf } from "./connections.ts";
import type { TrustStore } from "./connector.ts";
import { forwardedHeaders } from "./headers.ts";

export interface TunnelOptions {
  readonly origin: URL;
  readonly trust: TrustStore;
  readonly log: Logger;
  /** Called with each connection to the API server. Keepalive is on. */
  readonly onConnected: (socket: Socket) => void;
}

const CONNECT_TIMEOUT_MS = 10_000;

export function createTunnel({ origin, trust, log, onConnected }: TunnelOptions): Tunnel {
  return async (call, req, socket, head) => {
    // Loaded at the first upgrade, since most operators never make one.
    const [{ createProxyServer }, { caPem }] = await Promise.all([import("http-proxy"), trust.current()]);
    if (call.signal.aborted) socket.destroy();
    if (socket.destroyed) return;
    // http-proxy only connects GETs for WebSockets; the options then say what is really sent.
    req.method = "GET";
    req.url = call.target;
    req.headers = { upgrade: "websocket" };
    const options = {
      target: origin,
      ...(caPem !== undefined && { ca: caPem }),
      secure: true,
      toProxy: true,
      prependPath: false,
      method: call.method,
      headers: tunnelHeaders(call, origin),
      connectTimeout: CONNECT_TIMEOUT_MS,
    };
    const proxy = createProxyServer({});
    proxy.on("error", () => undefined); // the callback gets it as well
    proxy.on("proxyReqWs", (request) => {
      const { upgraded } = call.record;
      request.once("upgrade", () => upgraded?.(101));
      request.once("response", ({ statusCode }) => upgraded?.(statusCode));
      // Without its client the request is broken off, which says nothing of the API server.
      request.once("error", () => call.signal.aborted || upgraded?.(undefined));
      endTogether(request, socket, call.signal, onConnected);
    });
    proxy.ws(req, socket, head, options, (error) => {
      log.debug({ err: error }, "a tunnel ended with an error");
      socket.destroy();
    });
  };
}

// http-proxy leaves the API server's side open if the client goes before the upgrade is answered.
function endTogether(
  request: ClientRequest,
  socket: Duplex,
  signal: CallSignal,
  onConnected: TunnelOptions["onConnected"],
): void {
  let upstream: Socket | undefined;
  request.once("upgrade", (_res, upgraded: Socket) => {
    upstream = upgraded;
    upgraded.setKeepAlive(keepAliveOf(DEFAULT_LIVENESS));
    onConnected(upgraded);
  });
  socket.once("close", () => {
    unlink();
    // What the client sent before it went still goes out.
    if (upstream === undefined) request.destroy();
    else upstream.destroySoon();
  });
  const unlink = onAbort(signal, () => {
    if (socket.destroyed) return; // the client went by itself
    socket.destroy();
    upstream?.destroy();
  });
}

function tunnelHeaders(call: HttpCall, origin: URL): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = {};
  const flat = forwardedHeaders(call.headers, true);
  for (let index = 0; index + 1 < flat.length; index += 2) {
    const name = flat[index] as string;
    const value = flat[index + 1] as string;
    const before = headers[name];
    headers[name] = before === undefined ? value : [before, value].flat();
  }
  return { ...headers, host: origin.host, connection: "Upgrade", upgrade: call.upgrade ?? "" };
}
