// A channel that is given up in the middle of the TLS handshake, as a thousand proxies do with a manager that is busy: what is left open
// holds a place of the manager's until it is cut off there.
import { createServer, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { credentials, Metadata } from "@grpc/grpc-js";
import { expect, it } from "vitest";
import { createCa, issueServerCertificate } from "../../../src/base/certificates.ts";
import { openManagerChannel } from "../../../src/proxy/identity/manager-channel.ts";
import { eventually } from "../../support/eventually.ts";

it("leaves no connection behind when it is closed before the handshake is over", async () => {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket.on("error", () => undefined).resume()); // it hears the client's registration, and says nothing
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const address = server.address();
    const port = typeof address === "object" ? address?.port : undefined;
    const pass = { credentials: credentials.createSsl(), channelOptions: {}, metadata: new Metadata() };
    const channel = openManagerChannel(`127.0.0.1:${port}`, pass);
    channel.waitForReady(Number.POSITIVE_INFINITY, () => undefined);
    await eventually(() => (sockets[0]?.bytesRead ?? 0) > 0);
    channel.close();
    await eventually(() => sockets.every(({ destroyed }) => destroyed), 3_000);
    expect(sockets).toHaveLength(1);
  } finally {
    for (const socket of sockets) socket.destroy();
    server.close();
  }
});

it.each(["tls", "plain text"])("leaves no connection behind when it is closed before HTTP/2 is agreed upon: %s", async (how) => {
  const sockets: Socket[] = [];
  const ca = createCa({ commonName: "ctrlmesh", now: Date.now() });
  const leaf = issueServerCertificate(ca, { dnsNames: ["localhost"], ipAddresses: ["127.0.0.1"], now: Date.now() });
  const hear = (socket: Socket) => void sockets.push(socket.on("error", () => undefined).resume()); // and sends no SETTINGS
  const server =
    how === "tls" ? createTlsServer({ ALPNProtocols: ["h2"], cert: leaf.certPem, key: leaf.keyPem }, hear) : createServer(hear);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const address = server.address();
    const port = typeof address === "object" ? address?.port : undefined;
    const trusted = how === "tls" ? credentials.createSsl(Buffer.from(ca.certPem)) : credentials.createInsecure();
    const channel = openManagerChannel(`localhost:${port}`, {
      credentials: trusted,
      channelOptions: {},
      metadata: new Metadata(),
    });
    channel.waitForReady(Number.POSITIVE_INFINITY, () => undefined);
    await eventually(() => (sockets[0]?.bytesRead ?? 0) > 0); // it agrees to HTTP/2
    channel.close();
    await eventually(() => sockets.every(({ destroyed }) => destroyed), 3_000);
    expect(sockets).toHaveLength(1);
  } finally {
    for (const socket of sockets) socket.destroy();
    server.close();
  }
});
