// A scripted HTTPS server in place of the API server. The test chooses the responses and can inspect the requests and connections. The
// certificate is from a CA of the server, which may change at run time.

import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { createCa, issueServerCertificate, type KeyCertificate } from "../../src/base/certificates.ts";

export type Script = (req: IncomingMessage, res: ServerResponse) => void;

/** A request as the server received it. */
export interface SeenRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly rawHeaders: readonly string[];
  /** The number of the request's connection, from 1. */
  readonly connection: number;
}

export interface FakeApi {
  readonly url: string;
  readonly port: number;
  ca: KeyCertificate;
  readonly seen: SeenRequest[];
  /** Connections that are open now. */
  readonly open: number;
  /** Connections since the start. */
  readonly accepted: number;
  /** Sets the responses to later requests. */
  script: Script;
  onUpgrade: ((req: IncomingMessage, socket: Duplex, head: Buffer) => void) | undefined;
  /** Uses this certificate from the next connection on. */
  useCertificate(certificate: KeyCertificate): void;
  /** Uses a certificate of a new CA from the next connection on. */
  rotateCa(): void;
  /** Destroys the connections. The server keeps running. */
  reset(): void;
  close(): Promise<void>;
}

/** Starts the server on the given port of 127.0.0.1, or on a free one. */
export async function startFakeApi(script: Script = answerOk, port = 0): Promise<FakeApi> {
  const sockets = new Map<Socket, number>();
  let accepted = 0;
  const server: Server = createServer({ keepAliveTimeout: 90_000, requestTimeout: 0 }, (req, res) => {
    note(req);
    api.script(req, res);
  });
  const note = (req: IncomingMessage) => {
    const { method = "", url = "", headers, rawHeaders } = req;
    api.seen.push({ method, url, headers, rawHeaders, connection: sockets.get(req.socket) ?? 0 });
  };
  server.on("secureConnection", (socket) => {
    sockets.set(socket, ++accepted);
    socket.on("error", () => undefined);
    socket.once("close", () => sockets.delete(socket));
  });
  server.on("upgrade", (req, socket, head) => {
    note(req);
    if (api.onUpgrade === undefined) socket.destroy();
    else api.onUpgrade(req, socket, head);
  });
  server.on("tlsClientError", () => undefined);
  const useCertificate = ({ certPem: cert, keyPem: key }: KeyCertificate) => server.setSecureContext({ cert, key });
  const useCa = () => {
    api.ca = createCa({ commonName: "fake api ca", now: Date.now() });
    const leaf = issueServerCertificate(api.ca, { dnsNames: ["localhost"], ipAddresses: ["127.0.0.1"], now: Date.now() });
    useCertificate(leaf);
  };
  const api: FakeApi = {
    url: "",
    port: 0,
    ca: { certPem: "", keyPem: "" },
    seen: [],
    get open() {
      return sockets.size;
    },
    get accepted() {
      return accepted;
    },
    script,
    onUpgrade: undefined,
    useCertificate,
    rotateCa: useCa,
    reset() {
      for (const socket of sockets.keys()) socket.destroy();
    },
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      this.reset();
      await closed;
    },
  };
  useCa();
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const bound = (server.address() as AddressInfo).port;
  return Object.assign(api, { port: bound, url: `https://127.0.0.1:${bound}` });
}

/** Responds to every request with 200 and a small JSON object. */
function answerOk(req: IncomingMessage, res: ServerResponse): void {
  req.resume();
  answerJson(res, 200, { kind: "ConfigMap", apiVersion: "v1" });
}

/** Responds with JSON. */
export function answerJson(res: ServerResponse, status: number, value: unknown): void {
  const body = JSON.stringify(value);
  res.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(body) });
  res.end(body);
}
