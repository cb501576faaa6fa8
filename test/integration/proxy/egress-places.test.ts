// The places of the forward proxy, between a server that never answers and one that does. A client opens as many tunnels as it can
// to the first one.
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type EgressWorld, startEgressWorld } from "../../support/egress-world.ts";
import { eventually } from "../../support/eventually.ts";

/** All places of the proxy: MAX_OPEN. */
const PLACES = 1_000;

let world: EgressWorld;
let silent: Server;
const sockets: Socket[] = [];

beforeAll(async () => {
  silent = createServer((socket) => {
    sockets.push(socket.resume());
    socket.on("error", () => undefined);
  });
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  world = await startEgressWorld();
});
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  silent?.close();
  await world?.stop();
});

/** A connection to the proxy, and the first line of its answer. */
async function tunnelTo(port: number): Promise<{ readonly socket: Socket; readonly status: string }> {
  const socket = connect({ port: Number(new URL(world.url).port), host: "127.0.0.1" });
  sockets.push(socket);
  socket.on("error", () => undefined);
  socket.write(`CONNECT localhost:${port} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  const [head] = await once(socket, "data");
  return { socket, status: String(head).split("\r\n")[0] ?? "" };
}

describe("a server that accepts tunnels and never answers", () => {
  it("takes all places that nobody else wants, and gives one back to each tunnel of another server", async () => {
    const { port } = silent.address() as AddressInfo;
    for (let opened = 0; opened < PLACES; opened += 100) {
      const some = await Promise.all(Array.from({ length: 100 }, () => tunnelTo(port)));
      for (const { socket } of some) connectTls({ socket, servername: "localhost" }).on("error", () => undefined);
      expect(new Set(some.map(({ status }) => status))).toEqual(new Set(["HTTP/1.1 200 Connection established"]));
    }
    await eventually(async () => expect(await world.counted("allowed")).toBe(PLACES));
    expect((await tunnelTo(port)).status).toMatch(/^HTTP\/1\.1 503 /);
    for (let count = 1; count <= 20; count++) {
      const { socket, status } = await tunnelTo(world.https.port);
      expect(status).toBe("HTTP/1.1 200 Connection established");
      const secured = connectTls({ socket, servername: "localhost", rejectUnauthorized: false });
      await once(secured, "secureConnect");
      await eventually(async () => expect(await world.open()).toBe(PLACES));
    }
    expect((await tunnelTo(port)).status).toMatch(/^HTTP\/1\.1 503 /);
  }, 60_000);
});
