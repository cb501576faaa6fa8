// The page's server. Invariants: it listens on the loopback only. Who has not got the path of this start gets nothing, and no other site
// can ask it by a name that it has pointed here (DNS rebinding). It only reads. No answer has a credential in it.
import { randomBytes, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { failure } from "../frame/command.ts";

/** 128 bits, which nobody guesses. */
const TOKEN_BYTES = 16;
const HOST = "127.0.0.1";
const MAX_CONNECTIONS = 128;
/** Node looks every 30 s by default. Another user's connections that ask for nothing must not keep the page's away for so long. */
const LIMITS = { maxHeaderSize: 8_192, headersTimeout: 5_000, requestTimeout: 5_000, connectionsCheckingInterval: 1_000 };

const HEADERS = {
  "cache-control": "no-store",
  "content-security-policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; "),
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};

export interface Answer {
  readonly type: string;
  readonly body: string;
}

/** By the path behind the token. A function writes its answer itself. */
export type Routes = Readonly<
  Record<string, Answer | ((query: URLSearchParams, response: ServerResponse) => void | Promise<void>)>
>;

export interface PageServer {
  /** With the token. */
  readonly url: string;
  close(): Promise<void>;
}

/** @throws MeshError `COMMAND_FAILED` if the port is in use */
export async function servePage(port: number, routes: Routes): Promise<PageServer> {
  const token = randomBytes(TOKEN_BYTES).toString("hex");
  const server = createServer(LIMITS, (request, response) => {
    const { port: bound } = server.address() as AddressInfo;
    void answer(request, response, { token, routes, hosts: [`${HOST}:${bound}`, `localhost:${bound}`] });
  });
  server.maxConnections = MAX_CONNECTIONS;
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => reject(listenError(error, port)));
    server.listen(port, HOST, resolve);
  });
  return {
    url: `http://${HOST}:${(server.address() as AddressInfo).port}/${token}/`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function listenError(error: NodeJS.ErrnoException, port: number): Error {
  if (error.code === "EADDRINUSE") return failure(`port ${port} is in use: choose another one with --port, or leave it out`);
  if (error.code === "EACCES") return failure(`this user may not listen on port ${port}: choose one above 1023`);
  return failure(`listening on port ${port}`, error);
}

interface Site {
  readonly token: string;
  readonly routes: Routes;
  readonly hosts: readonly string[];
}

async function answer(
  { method, url = "", headers }: IncomingMessage,
  response: ServerResponse,
  { token, routes, hosts }: Site,
): Promise<void> {
  const refuse = (code: number, text: string, more: Readonly<Record<string, string>> = {}) =>
    response.writeHead(code, { ...HEADERS, "content-type": "text/plain; charset=utf-8", ...more }).end(`${text}\n`);
  if (!hosts.includes(headers.host ?? "")) return void refuse(403, "this server answers for 127.0.0.1 and localhost only");
  const [, given = "", file = "", query = ""] = /^\/([^/?]*)\/([^?]*)\??(.*)$/.exec(url) ?? [];
  const route = isSame(given, token) && Object.hasOwn(routes, file) ? routes[file] : undefined;
  if (route === undefined) return void refuse(404, "not found: open the address that ctrlmesh dashboard has printed");
  if (method !== "GET" && method !== "HEAD") return void refuse(405, "this server only reads", { allow: "GET, HEAD" });
  for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
  if (typeof route === "function") {
    if (method === "HEAD") return void response.writeHead(200).end();
    return route(new URLSearchParams(query), response);
  }
  response.writeHead(200, { "content-type": route.type, "content-length": Buffer.byteLength(route.body) });
  response.end(method === "HEAD" ? undefined : route.body);
}

/** Takes the same time for each wrong text of this length. */
function isSame(given: string, token: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(token)];
  return a.length === b.length && timingSafeEqual(a, b);
}
