// Connects a client's socket with the API server's after an upgrade, as raw bytes in both directions (SPDY
// and WebSocket of exec, attach and port-forward). Invariants: target, method and headers are those that the
// layers let through, never the client's own; both sockets end together, and when the call's signal fires.
import type { ClientRequest } from "node:http";
import { Agent } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { onAbort } from "../../base/abort.ts";
import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import type { HttpCall, Tunnel } from "../http/handler.ts";
import type { Connect } from "./connector.ts";
import { ASK_AGAIN_MS, type MayWrite } from "./exchange.ts";
import { forwardedHeaders } from "./headers.ts";

export interface TunnelOptions {
  readonly origin: URL;
  /** Put before the path of each call. */
  readonly prefix: string;
  /** @param isCut asked when the proxy closes the connection: if true, it ends with a reset, where `mayWrite` is set */
  readonly connect: (isCut: () => boolean) => Connect;
  /** Asked for each chunk of the client, and again and again meanwhile. If it has an error, the tunnel is cut. */
  readonly mayWrite: MayWrite | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

export function createTunnel({ origin, prefix, connect, mayWrite, clock, log }: TunnelOptions): Tunnel {
  return async (call, req, socket, head) => {
    // Loaded at the first upgrade, since most operators never make one.
    const { createProxyServer } = await import("http-proxy");
    if (call.signal.aborted) socket.destroy();
    if (socket.destroyed) return;
    // http-proxy only connects GETs for WebSockets; the options then say what is really sent.
    req.method = "GET";
    req.url = prefix + call.target;
    req.headers = { upgrade: "websocket" };
    let upstream: Socket | undefined;
    let isCut = false;
    const cut = () => {
      if (socket.destroyed) return; // the client went by itself
      isCut = true;
      socket.destroy();
      upstream?.destroy();
    };
    const options = {
      target: origin,
      toProxy: true,
      prependPath: false,
      method: call.method,
      headers: tunnelHeaders(call, origin),
      agent: agentOf(connect(() => isCut)),
    };
    const proxy = createProxyServer({});
    proxy.on("error", () => undefined); // the callback gets it as well
    proxy.on("proxyReqWs", (request) => {
      const { upgraded } = call.record;
      request.once("upgrade", (_response, connected: Socket) => {
        upstream = connected;
        upgraded?.(101);
        if (mayWrite !== undefined) guard(connected, mayWrite, cut, clock);
      });
      request.once("response", ({ statusCode }) => upgraded?.(statusCode));
      // Without its client the request is broken off, which says nothing of the API server.
      request.once("error", () => call.signal.aborted || upgraded?.(undefined));
      endTogether(request, socket, () => upstream);
    });
    const unlink = onAbort(call.signal, cut);
    socket.once("close", unlink);
    proxy.ws(req, socket, head, options, (error) => {
      log.debug({ err: error }, "a tunnel ended with an error");
      socket.destroy();
    });
  };
}

interface Address {
  readonly host: string;
  readonly port: number | string;
  readonly hostname?: string;
}
type Connected = (error: Error | null, socket: Socket | null) => void;

/** An agent for one request, with a connection of the proxy's own connector. */
function agentOf(connect: Connect): Agent {
  const createConnection = ({ host, port, hostname = host }: Address, connected: Connected): void =>
    connect({ protocol: "https:", host: hostname, hostname, port: String(port) }, (...[error, socket]) =>
      connected(error, socket),
    );
  return Object.assign(new Agent({ keepAlive: false }), { createConnection });
}

/** Lets nothing of the client pass while `mayWrite` has an error. */
function guard(upstream: Socket, mayWrite: MayWrite, cut: () => void, clock: Clock): void {
  const write = upstream.write.bind(upstream) as (...args: unknown[]) => boolean;
  upstream.write = (...args: unknown[]) => {
    if (mayWrite() === undefined) return write(...args);
    cut();
    return false;
  };
  const askAgain = () => {
    if (upstream.destroyed) return;
    if (mayWrite() !== undefined) cut();
    else clock.after(ASK_AGAIN_MS, askAgain);
  };
  askAgain();
}

// http-proxy leaves the API server's side open if the client goes before the upgrade is answered.
function endTogether(request: ClientRequest, socket: Duplex, upstream: () => Socket | undefined): void {
  socket.once("close", () => {
    // What the client sent before it went still goes out.
    const connected = upstream();
    if (connected === undefined) request.destroy();
    else connected.destroySoon();
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
