// A proxy closes its channel to a busy manager before the connection is complete. A socket that stayed open would occupy one of the
// manager's places for connections.
import { createServer, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { credentials, Metadata } from "@grpc/grpc-js";
import { expect, it } from "vitest";
import { createCa, issueServerCertificate } from "../../../src/base/certificates.ts";
import { openManagerChannel } from "../../../src/proxy/identity/manager-channel.ts";
import { eventually } from "../../support/eventually.ts";

it("a channel that closes before the TLS handshake ends leaves no connection behind", async () => {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket.on("error", () => undefined).resume()); // the server reads the ClientHello and sends nothing
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

it.each(["tls", "plain text"])(
  "a channel that closes before the server's HTTP/2 settings arrive leaves no connection behind: %s",
  async (how) => {
    const sockets: Socket[] = [];
    const ca = createCa({ commonName: "ctrlmesh", now: Date.now() });
    const leaf = issueServerCertificate(ca, { dnsNames: ["localhost"], ipAddresses: ["127.0.0.1"], now: Date.now() });
    const readOnly = (socket: Socket) => void sockets.push(socket.on("error", () => undefined).resume()); // sends no SETTINGS
    const server =
      how === "tls"
        ? createTlsServer({ ALPNProtocols: ["h2"], cert: leaf.certPem, key: leaf.keyPem }, readOnly)
        : createServer(readOnly);
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
      await eventually(() => (sockets[0]?.bytesRead ?? 0) > 0); // the client has sent bytes
      channel.close();
      await eventually(() => sockets.every(({ destroyed }) => destroyed), 3_000);
      expect(sockets).toHaveLength(1);
    } finally {
      for (const socket of sockets) socket.destroy();
      server.close();
    }
  },
);
