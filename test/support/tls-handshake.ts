// A TLS handshake in memory, to check whether a client that trusts certain CAs accepts a chain.
import { duplexPair } from "node:stream";
import { connect, TLSSocket } from "node:tls";
import type { KeyCertificate } from "../../src/base/certificates.ts";

/** Resolves with "ok", or with the code of the client's error. */
export async function handshake(served: KeyCertificate, trustPem: string, servername: string): Promise<string> {
  const [clientSide, serverSide] = duplexPair();
  const server = new TLSSocket(serverSide, { isServer: true, cert: served.certPem, key: served.keyPem });
  server.on("error", () => undefined);
  const client = connect({ socket: clientSide, ca: trustPem, servername });
  try {
    return await new Promise<string>((resolve) => {
      client.once("secureConnect", () => resolve("ok"));
      client.once("error", (error: Error & { code?: string }) => resolve(error.code ?? error.message));
    });
  } finally {
    client.destroy();
    server.destroy();
  }
}
