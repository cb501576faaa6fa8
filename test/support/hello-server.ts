// An HTTPS server that answers "hello", by default on the loopback, for the names localhost and 127.0.0.1.
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { createCa, issueServerCertificate } from "../../src/base/certificates.ts";

export interface HelloServer {
  readonly port: number;
  /** PEM of the CA of its certificate. */
  readonly ca: string;
  close(): void;
}

/** @param address an IPv4 address of this machine */
export async function startHelloServer(address = "127.0.0.1"): Promise<HelloServer> {
  const now = Date.now();
  const ca = createCa({ commonName: "hello server", now });
  const { certPem, keyPem } = issueServerCertificate(ca, { dnsNames: ["localhost"], ipAddresses: [address], now });
  const server = createServer({ cert: certPem, key: keyPem }, (_, res) => res.end("hello"));
  await new Promise<void>((resolve) => server.listen(0, address, resolve));
  const { port } = server.address() as AddressInfo;
  return { port, ca: ca.certPem, close: () => void server.close() };
}
