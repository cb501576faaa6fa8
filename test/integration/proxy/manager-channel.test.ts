// A channel that is given up in the middle of the TLS handshake, as a thousand proxies do with a manager that is busy: what is left open
// holds a place of the manager's until it is cut off there.
import { createServer, type Socket } from "node:net";
import { credentials, Metadata } from "@grpc/grpc-js";
import { expect, it } from "vitest";
import { openManagerChannel } from "../../../src/proxy/identity/manager-channel.ts";
import { eventually } from "../../support/eventually.ts";

it("leaves no connection behind when it is closed before the handshake is over", async () => {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket.on("error", () => undefined).resume()); // it hears the client's hello, and says nothing
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
