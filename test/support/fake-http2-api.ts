// The scripted API server of fake-api.ts with HTTP/2 for clients that offer it and HTTP/1.1 for others, like kube-apiserver. It
// adds GOAWAY, resets of single streams, a limit of streams, and the count of open streams.

import type { IncomingMessage, ServerResponse } from "node:http";
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse, type ServerHttp2Session } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { createCa, issueServerCertificate } from "../../src/base/certificates.ts";
import type { FakeApi, Script } from "./fake-api.ts";

export interface FakeHttp2Api extends FakeApi {
  /** The open HTTP/2 connections, oldest first. */
  readonly sessions: Set<ServerHttp2Session>;
  /** The number of open streams. */
  readonly streams: number;
  /** The HTTP/2 codes of the ended streams, in order. 0 is success, and 8 is cancelled by the proxy. */
  readonly closed: number[];
}

export interface FakeHttp2Options {
  readonly script: Script;
  /** Default 100. */
  readonly maxConcurrentStreams?: number;
  /** Address to listen on; default 127.0.0.1. */
  readonly host?: string;
}

/** Starts the server on a free port. */
export async function startFakeHttp2Api(options: FakeHttp2Options): Promise<FakeHttp2Api> {
  const { script, maxConcurrentStreams = 100, host = "127.0.0.1" } = options;
  const ca = createCa({ commonName: "fake api ca", now: Date.now() });
  const leaf = issueServerCertificate(ca, { dnsNames: ["localhost"], ipAddresses: [host], now: Date.now() });
  const sockets = new Set<Socket>();
  const sessions = new Set<ServerHttp2Session>();
  const closed: number[] = [];
  let accepted = 0;
  let streams = 0;
  const server = createSecureServer({
    cert: leaf.certPem,
    key: leaf.keyPem,
    allowHTTP1: true,
    maxHeaderListPairs: 512,
    settings: { maxConcurrentStreams, maxHeaderListSize: 512 * 1024 },
  });
  server.on("request", (req: Http2ServerRequest, res: Http2ServerResponse) => {
    const { method = "", url = "", headers, rawHeaders } = req;
    api.seen.push({ method, url, headers, rawHeaders, connection: accepted });
    if (req.httpVersion === "2.0") {
      streams++;
      res.stream.on("error", () => undefined);
      res.stream.once("close", () => {
        streams--;
        closed.push(res.stream.rstCode);
      });
    }
    api.script(req as unknown as IncomingMessage, res as unknown as ServerResponse);
  });
  server.on("secureConnection", (socket: Socket) => {
    accepted++;
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.once("close", () => sockets.delete(socket));
  });
  server.on("session", (session) => {
    sessions.add(session);
    session.on("error", () => undefined);
    session.once("close", () => sessions.delete(session));
  });
  server.on("sessionError", () => undefined);
  const api: FakeHttp2Api = {
    url: "",
    port: 0,
    ca,
    seen: [],
    script,
    onUpgrade: undefined,
    sessions,
    closed,
    get open() {
      return sockets.size;
    },
    get accepted() {
      return accepted;
    },
    get streams() {
      return streams;
    },
    useCertificate() {
      throw new Error("the fake HTTP/2 API cannot change its certificate");
    },
    rotateCa() {
      throw new Error("the fake HTTP/2 API cannot change its CA");
    },
    reset() {
      for (const socket of sockets) socket.destroy();
    },
    async close() {
      const over = new Promise((resolve) => server.close(resolve));
      this.reset();
      await over;
    },
  };
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const { port } = server.address() as AddressInfo;
  return Object.assign(api, { port, url: `https://${host}:${port}` });
}
