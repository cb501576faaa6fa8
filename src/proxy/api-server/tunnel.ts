// Connects a client's socket with the API server's after an upgrade, as raw bytes in both directions (SPDY
// and WebSocket of exec, attach and port-forward). Invariants: target, method and headers are those that the
// layers let through, never the client's own; both sockets end together, and when the call's signal fires. With
// `mayWrite` no byte leaves this process while it has an error, nor FLUSH_MS after the client has gone.
import { Agent } from "node:https";
import type { Socket } from "node:net";
import { onAbort } from "../../base/abort.ts";
import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import { once } from "../../base/remember.ts";
import type { HttpCall, Tunnel } from "../http/handler.ts";
import type { Connect } from "./connector.ts";
import { ASK_AGAIN_MS, type MayWrite } from "./exchange.ts";
import { forwardedHeaders } from "./headers.ts";

/** How long bytes of a client that has gone may still wait for a peer that does not take them, where `mayWrite` is set. */
export const FLUSH_MS = 1_000;

export interface TunnelOptions {
  readonly origin: URL;
  /** Put before the path of each call. */
  readonly prefix: string;
  /** @param isCut asked when the proxy closes the connection: if true, it ends with a reset, where `mayWrite` is set */
  readonly connect: (isCut: () => boolean) => Connect;
  /** Asked for the request, for each chunk of the client, and again and again meanwhile. If it has an error, the tunnel is cut. */
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
    let isUpgraded = false;
    let isCut = false;
    const cut = () => {
      isCut = true;
      socket.destroy();
      upstream?.destroy();
    };
    const onConnected = (connected: Socket) => {
      upstream = connected;
      if (mayWrite !== undefined) guard(connected, mayWrite, cut, clock);
    };
    const options = {
      target: origin,
      toProxy: true,
      prependPath: false,
      method: call.method,
      headers: tunnelHeaders(call, origin),
      agent: agentOf(
        connect(() => isCut),
        onConnected,
      ),
    };
    const proxy = createProxyServer({});
    proxy.on("error", () => undefined); // the callback gets it as well
    proxy.on("proxyReqWs", (request) => {
      const { upgraded } = call.record;
      request.once("upgrade", () => {
        isUpgraded = true;
        upgraded?.(101);
      });
      request.once("response", ({ statusCode }) => upgraded?.(statusCode));
      // Without its client the request is broken off, which says nothing of the API server.
      request.once("error", () => call.signal.aborted || upgraded?.(undefined));
      const flushed = once(() => upstream && endSoon(upstream, cut, clock));
      if (mayWrite !== undefined) socket.once("end", flushed); // the API server, too, ends a tunnel of which one side has ended
      socket.once("close", () => {
        // http-proxy leaves the API server's side open if the client goes before the upgrade is answered.
        if (!isUpgraded || upstream === undefined) request.destroy();
        else if (mayWrite === undefined) upstream.destroySoon();
        else {
          upstream.resume();
          flushed();
        }
      });
    });
    const unlink = onAbort(call.signal, () => socket.destroyed || cut()); // unless the client went by itself
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

/** An agent for one request, with a connection of the proxy's own connector. @param onConnected called before the request is written */
function agentOf(connect: Connect, onConnected: (socket: Socket) => void): Agent {
  const createConnection = ({ host, port, hostname = host }: Address, connected: Connected): void =>
    connect({ protocol: "https:", host: hostname, hostname, port: String(port) }, (...[error, socket]) => {
      if (socket) onConnected(socket);
      connected(error, socket);
    });
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

/** What the client sent before it went still goes out. @param cut called if the API server does not end the connection soon */
function endSoon(upstream: Socket, cut: () => void, clock: Clock): void {
  upstream.end();
  const timer = clock.after(FLUSH_MS, cut);
  upstream.once("close", () => timer.cancel());
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
