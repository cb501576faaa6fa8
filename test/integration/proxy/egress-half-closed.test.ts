// Tunnels of the forward proxy of which one side has ended and the other goes on: each ends soon, and what is under way still arrives.
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { silentLogger } from "../../../src/base/log.ts";
import { parseCidr } from "../../../src/proxy/egress/address-check.ts";
import { createEgress, type EgressServer } from "../../../src/proxy/egress/create-egress.ts";
import { HELLO } from "../../support/client-hello.ts";
import { eventually } from "../../support/eventually.ts";
import { runningPolicies } from "../../support/running-policies.ts";

const HALF_CLOSED_MS = 150;
const LOOPBACK = [parseCidr("127.0.0.1/32")].filter((range) => range !== undefined);

let target: Server;
let egress: EgressServer;
let metrics: () => Promise<string>;
const sockets: Socket[] = [];

/** What the server does with each connection. It never ends one by itself. */
let serve: (socket: Socket) => void;

beforeEach(async () => {
  target = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.push(socket.on("error", () => undefined));
    serve(socket);
  });
  await once(target.listen(0, "127.0.0.1"), "listening");
  const { policies, registry, session } = runningPolicies();
  const server = createEgress(
    { egressListen: { host: "127.0.0.1", port: 0 }, egressPrivateAddresses: LOOPBACK, drainMs: 0 },
    {
      clock: systemClock,
      random: Math.random,
      log: silentLogger(),
      policies,
      session,
      registry,
      accessLog: { pick: () => undefined },
      times: { halfClosedMs: HALF_CLOSED_MS },
    },
  );
  if (server === undefined) throw new Error("no forward proxy");
  egress = server;
  metrics = () => registry.metrics();
  await egress.start(new AbortController().signal);
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await egress.stop();
  target.close();
});

const countsOpen = async (open: number) => expect(await metrics()).toContain(`ctrlmesh_proxy_egress_open{cluster=""} ${open}\n`);

async function openTunnel(): Promise<Socket> {
  const { port } = target.address() as AddressInfo;
  const client = connect({ port: egress.port, host: "127.0.0.1", allowHalfOpen: true }).on("error", () => undefined);
  sockets.push(client);
  client.write(`CONNECT 127.0.0.1:${port} HTTP/1.1\r\nHost: x\r\n\r\n`);
  await once(client, "data");
  client.write(HELLO);
  return client;
}

describe("a tunnel", () => {
  it("ends on both sides soon after its client has ended, if the server neither reads nor ends", async () => {
    serve = (socket) => void socket.write("garbage");
    const client = await openTunnel();
    await once(client, "data");
    client.end();
    await eventually(() => countsOpen(0));
    await eventually(() => expect(client.destroyed || client.readableEnded).toBe(true));
  });

  it("ends on both sides soon after its server has ended, if the client goes on", async () => {
    serve = (socket) => void socket.once("data", () => socket.end("bye"));
    const client = await openTunnel();
    await once(client, "end");
    await eventually(() => countsOpen(0));
  });

  it("brings all of a slow answer to a client that has ended", async () => {
    const parts = 10;
    serve = (socket) =>
      void socket.resume().once("end", () => {
        let sent = 0;
        const timer = setInterval(() => {
          if (++sent < parts) return void socket.write("x");
          clearInterval(timer);
          socket.end("x");
        }, HALF_CLOSED_MS / 3);
      });
    const client = await openTunnel();
    let answer = "";
    client.on("data", (chunk) => {
      answer += chunk;
    });
    client.end();
    await once(client, "end");
    expect(answer).toBe("x".repeat(parts));
    await eventually(() => countsOpen(0));
  });

  it("stays open for longer while neither side has ended", async () => {
    serve = (socket) => void socket.resume();
    await openTunnel();
    await new Promise((resolve) => setTimeout(resolve, 3 * HALF_CLOSED_MS));
    await countsOpen(1);
  });
});
