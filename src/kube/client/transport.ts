// One HTTP/1.1 connection pool to the API server. Invariants: TLS is verified; a token is sent only over TLS
// or the loopback; every exchange ends when its signal fires.
import type { IncomingHttpHeaders } from "node:http";
import { TLSSocket } from "node:tls";
import { buildConnector, Pool } from "undici";
import { errorMessage, MeshError } from "../../base/errors.ts";
import type { KubeConnection } from "./connection.ts";

export interface TransportRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path and query, without the server's path prefix. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
}

export interface TransportResponse {
  readonly statusCode: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: AsyncIterable<Buffer> & { text(): Promise<string>; json(): Promise<unknown>; destroy(): void };
}

export type Transport = ReturnType<typeof createTransport>;

// Node sends a probe each second after this idle time and gives up after ten: a dead peer is found in 25 s.
const TCP_KEEPALIVE_MS = 15_000;
const CONNECT_TIMEOUT_MS = 10_000;
// Below kube-apiserver's 90 s and most load balancers' 60 s, so that the server is rarely the first to close.
const IDLE_CONNECTION_MS = 30_000;
/** With `onServerCertificate`: only a new connection shows a renewed certificate, and watches could use an old one for ever. */
const REQUESTS_PER_CONNECTION = 4;

/** @throws MeshError `BAD_CONNECTION` for a server URL that cannot be used */
export function createTransport(connection: KubeConnection) {
  const server = parseServer(connection.server);
  const pool = new Pool(server.origin, {
    allowH2: false, // undici's HTTP/2 leaked aborted requests, and each watch needs its own connection anyway
    keepAliveTimeout: IDLE_CONNECTION_MS,
    headersTimeout: 0, // the client has deadlines by its own clock
    bodyTimeout: 0,
    ...(connection.maxAnswerBytes !== undefined && { maxResponseSize: connection.maxAnswerBytes }),
    ...(connection.onServerCertificate !== undefined && { maxRequestsPerClient: REQUESTS_PER_CONNECTION }),
    connect: connectorOf(connection),
  });
  const prefix = server.pathname.replace(/\/$/, "");
  return {
    /** @throws MeshError `KUBE_UNREACHABLE`, or the signal's reason */
    async send({ method, path, headers, body, signal }: TransportRequest): Promise<TransportResponse> {
      signal.throwIfAborted();
      const token = await connection.token();
      try {
        return await pool.request({
          method,
          path: prefix + path,
          headers: {
            ...headers,
            "user-agent": connection.userAgent,
            ...(token === "" ? {} : { authorization: `Bearer ${token}` }),
          },
          body: body ?? null,
          signal,
        });
      } catch (cause) {
        throw connectionError(cause, signal, server.host);
      }
    },
    close: (): Promise<void> => pool.destroy(),
  };
}

function connectorOf(connection: KubeConnection): buildConnector.BuildOptions | buildConnector.connector {
  const { onServerCertificate } = connection;
  const options: buildConnector.BuildOptions = {
    timeout: CONNECT_TIMEOUT_MS,
    ...(connection.socketPath !== undefined && { socketPath: connection.socketPath }),
    keepAliveInitialDelay: TCP_KEEPALIVE_MS,
    rejectUnauthorized: connection.skipTlsVerify !== true, // NODE_TLS_REJECT_UNAUTHORIZED does not turn it off
    ca: connection.caPem,
    cert: connection.clientCert,
    key: connection.clientKey,
    servername: connection.tlsServerName,
  };
  if (onServerCertificate === undefined) return options;
  // A resumed session would not show the certificate of today.
  const connect = buildConnector({ ...options, allowH2: false, maxCachedSessions: 0 });
  return (target, callback) =>
    connect(target, (...result) => {
      const [, socket] = result;
      const certificate = socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined;
      if (certificate !== undefined) onServerCertificate(certificate);
      callback(...result);
    });
}

/** The error for a broken exchange: the signal's reason if it fired, else `KUBE_UNREACHABLE`. */
export function connectionError(cause: unknown, signal: AbortSignal, host: string): unknown {
  if (signal.aborted) return signal.reason;
  return new MeshError("KUBE_UNREACHABLE", `talking to the API server at ${host}`, { cause });
}

/** True if the peer closed a connection during a request, as can happen to an idle connection of the pool. */
export function isConnectionReset(error: unknown): boolean {
  const cause = error instanceof MeshError && error.code === "KUBE_UNREACHABLE" ? error.cause : undefined;
  return cause instanceof Error && "code" in cause && (cause.code === "ECONNRESET" || cause.code === "UND_ERR_SOCKET");
}

const LOOPBACK = new Set(["127.0.0.1", "localhost", "[::1]"]);

function parseServer(text: string): URL {
  let url: URL;
  try {
    url = new URL(text);
  } catch (cause) {
    throw new MeshError("BAD_CONNECTION", `reading the API server's address: ${errorMessage(cause)}`, { cause });
  }
  if (url.protocol !== "https:" && !(url.protocol === "http:" && LOOPBACK.has(url.hostname))) {
    throw new MeshError("BAD_CONNECTION", `reading the API server's address ${url.host}: it must be https, or http on loopback`);
  }
  return url;
}
