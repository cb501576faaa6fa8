// Makes the TLS connections to the API server. Invariant: no request goes to a server whose certificate does not verify against the
// present CA file. The file is checked before each new connection, so that a rotated CA needs no restart. The pools and tunnels use it.
import { readFile, stat } from "node:fs/promises";
import { createSecureContext, type SecureContext, type TLSSocket } from "node:tls";
import buildConnector from "undici/lib/core/connect.js";
import { MeshError } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import { keepAliveOf, type Liveness } from "./liveness.ts";

export type Connect = ReturnType<typeof buildConnector>;

const CONNECT_TIMEOUT_MS = 10_000;

/** A trusted CA and the connector that verifies against it. A new CA gets a new connector, so no TLS session outlives it. */
export interface Trust {
  readonly caPem: string;
  readonly context: SecureContext;
  readonly connect: Connect;
  /** The same, offering HTTP/2 first. */
  readonly connectHttp2: Connect;
}

export interface TrustStore {
  /**
   * The trust of this moment. Keeps the last good one while the file cannot be read.
   * @throws MeshError `CA_UNREADABLE` if there has never been a good one
   */
  current(): Promise<Trust>;
}

/** Reads the CA file, and again whenever it has changed. */
export function createTrustStore(caFile: string, log: Logger): TrustStore {
  let trust: Trust | undefined;
  let seen = "";
  let warned = false;
  return {
    async current() {
      try {
        const { mtimeMs, size, ino } = await stat(caFile);
        const now = `${mtimeMs}/${size}/${ino}`;
        if (trust === undefined || now !== seen) {
          const caPem = await readFile(caFile, "utf8");
          if (trust === undefined || caPem !== trust.caPem) trust = createTrust(caPem);
          seen = now;
        }
        warned = false;
      } catch (cause) {
        if (trust === undefined) throw new MeshError("CA_UNREADABLE", `reading the API server's CA from ${caFile}`, { cause });
        if (!warned)
          log.warn({ err: cause, file: caFile }, "the API server's CA file is not readable; keeping the last good one");
        warned = true;
      }
      return trust;
    },
  };
}

function createTrust(caPem: string): Trust {
  if (!caPem.includes("-----BEGIN CERTIFICATE-----"))
    throw new MeshError("CA_UNREADABLE", "reading a CA: no PEM certificate in it");
  const context = createSecureContext({ ca: caPem, minVersion: "TLSv1.2" });
  const options = { secureContext: context, timeout: CONNECT_TIMEOUT_MS, keepAlive: false };
  return {
    caPem,
    context,
    connect: buildConnector({ ...options, allowH2: false }),
    connectHttp2: buildConnector({ ...options, allowH2: true, preferH2: true }),
  };
}

export interface ConnectorOptions {
  readonly trust: TrustStore;
  readonly liveness: Liveness;
  /** Offer HTTP/2 first. The socket's `alpnProtocol` is the protocol that was agreed. */
  readonly http2?: boolean;
  readonly onConnected: (socket: TLSSocket) => void;
  readonly onFailed: (error: Error) => void;
}

/** A connector for undici: takes the present trust, connects, and turns TCP keepalive on. */
export function createConnector({ trust, liveness, http2 = false, onConnected, onFailed }: ConnectorOptions): Connect {
  const keepAlive = keepAliveOf(liveness);
  return (options, callback) => {
    const failed = (error: Error) => {
      onFailed(error);
      callback(error, null);
    };
    trust.current().then(
      (now) =>
        (http2 ? now.connectHttp2 : now.connect)(options, (...result) => {
          const [error, socket] = result;
          if (error !== null) return failed(error); // the socket is then undefined, not null
          const tls = socket as TLSSocket;
          tls.setKeepAlive(keepAlive);
          onConnected(tls);
          callback(null, socket);
        }),
      failed,
    );
  };
}
