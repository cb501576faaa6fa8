// Makes the TLS connections to the API server. Invariant: no request goes to a server whose certificate does
// not verify against the CA file as it is now: a rotated CA needs no restart.
import type { Socket } from "node:net";
import { createSecureContext, type TLSSocket } from "node:tls";
import buildConnector from "undici/lib/core/connect.js";
import { createLastGoodFile, type LastGoodFile } from "../../base/last-good-file.ts";
import type { Logger } from "../../base/log.ts";
import { once } from "../../base/remember.ts";
import { keepAliveOf, type Liveness } from "./connections.ts";

export type Connect = ReturnType<typeof buildConnector>;

/** Of each step, TCP and TLS. */
const CONNECT_TIMEOUT_MS = 10_000;
const connectTcp = buildConnector({ timeout: CONNECT_TIMEOUT_MS, keepAlive: false });

/** A CA and its connector. A new CA gets a new connector, so that no TLS session outlives it. */
export interface Trust {
  /** Absent: the CAs of the system. */
  readonly caPem: string | undefined;
  readonly connect: Connect;
  /** Offers HTTP/2 first. */
  readonly connectHttp2: Connect;
}

/** `current` throws `CA_UNREADABLE` if there has never been a good CA. */
export type TrustStore = LastGoodFile<Trust>;

export function createTrustStore(file: string, log: Logger): TrustStore {
  return createLastGoodFile({ file, name: "the API server's CA", code: "CA_UNREADABLE", parse: parseTrust, log });
}

/** The trust in another cluster's API server. @param caPem absent: the CAs of the system. @param serverName absent: the host of the URL */
export function fixedTrust(caPem: string | undefined, serverName: string | undefined): TrustStore {
  const trust = once(() => createTrust(caPem, serverName));
  return { current: async () => trust() };
}

function parseTrust(caPem: string): Trust {
  if (!caPem.includes("-----BEGIN CERTIFICATE-----")) throw new Error("there is no PEM certificate in it");
  return createTrust(caPem, undefined);
}

function createTrust(caPem: string | undefined, serverName: string | undefined): Trust {
  const secureContext = createSecureContext({ ...(caPem && { ca: caPem }), minVersion: "TLSv1.2" });
  const options = { secureContext, timeout: CONNECT_TIMEOUT_MS, keepAlive: false };
  const named = (connect: Connect): Connect =>
    serverName === undefined ? connect : (to, callback) => connect({ ...to, servername: serverName }, callback);
  return {
    caPem,
    connect: named(buildConnector({ ...options, allowH2: false })),
    connectHttp2: named(buildConnector({ ...options, allowH2: true, preferH2: true })),
  };
}

export interface ConnectorOptions {
  readonly trust: TrustStore;
  readonly liveness: Liveness;
  /** Offer HTTP/2 first. The socket's `alpnProtocol` is the protocol that was agreed. */
  readonly http2?: boolean;
  /** Asked when the proxy closes the connection. If true, it ends with a reset. Default: never */
  readonly endsByReset?: (() => boolean) | undefined;
  readonly onConnected: (socket: TLSSocket) => void;
  readonly onFailed: (error: Error) => void;
}

export function createConnector(connectorOptions: ConnectorOptions): Connect {
  const { trust, liveness, http2 = false, endsByReset, onConnected, onFailed } = connectorOptions;
  const keepAlive = keepAliveOf(liveness);
  return (options, callback) => {
    const failed = (error: Error) => {
      onFailed(error);
      callback(error, null);
    };
    const secure = (connect: Connect, tcp?: Socket) =>
      connect({ ...options, ...(tcp && { httpSocket: tcp }) }, (...result) => {
        const [error, socket] = result;
        if (error !== null) return failed(error); // the socket is then undefined, not null
        const tls = socket as TLSSocket;
        if (tcp !== undefined && endsByReset !== undefined) endByReset(tls, tcp, endsByReset);
        tls.setKeepAlive(keepAlive);
        onConnected(tls);
        callback(null, socket);
      });
    trust.current().then((now) => {
      const connect = http2 ? now.connectHttp2 : now.connect;
      if (endsByReset === undefined) secure(connect);
      else
        connectTcp({ ...options, protocol: "http:" }, (...[error, tcp]) =>
          error ? failed(error) : secure(connect, tcp as Socket),
        );
    }, failed);
  };
}

/** What the kernel has not sent yet must not arrive later. Node resets a TCP socket, but not a TLS socket that made its own. */
function endByReset(tls: TLSSocket, tcp: Socket, isNeeded: () => boolean): void {
  const destroy = tls.destroy.bind(tls);
  const destroyTcp = tcp.destroy.bind(tcp);
  tls.destroy = (error) => {
    // Node then closes the TCP socket below. If it were closed before, Node would free OpenSSL's state in the middle of a handshake.
    if (!tls.destroyed && isNeeded())
      tcp.destroy = () => {
        tcp.destroy = destroyTcp;
        tcp.resetAndDestroy();
        return tcp;
      };
    return destroy(error);
  };
}
