// Writes to another cluster that are cut while their bytes wait in the kernel for a peer that does not read. The peer is a TCP relay
// before a scripted API server, so the tests see how the connection ends.
import { readFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { MeshError } from "../../../src/base/errors.ts";
import { silentLogger } from "../../../src/base/log.ts";
import { Registry } from "../../../src/base/metrics.ts";
import { parseRequestInfo } from "../../../src/kube/request-info.ts";
import { type ApiServer, createApiServer } from "../../../src/proxy/api-server/api-server.ts";
import { fixedTrust } from "../../../src/proxy/api-server/connector.ts";
import { createRecord } from "../../../src/proxy/call/call.ts";
import { asSource, discardBody } from "../../../src/proxy/http/byte-stream.ts";
import { CallAbort } from "../../../src/proxy/http/call-signal.ts";
import { eventually } from "../../support/eventually.ts";
import { answerJson, type FakeApi, startFakeApi } from "../../support/fake-api.ts";
import { createFakeClock } from "../../support/fake-clock.ts";

/** More bytes than the kernel holds for a connection whose peer does not read. */
const BODY = Buffer.alloc(32 * 1024 * 1024, "x");
/** After so many bytes of a connection, the peer stops to read: before its kernel makes the receive buffer large. */
const READ_BYTES = 32 * 1024;
/** Less than the kernel holds at the sender. */
const PIECE_BYTES = 256 * 1024;
const ABANDONED_MS = 5_000;
const CONFIG_MAPS = "/api/v1/namespaces/own/configmaps";
/** Writes and reads of one object share their connections. */
const TARGETS = { GET: `${CONFIG_MAPS}/c`, POST: CONFIG_MAPS };

interface Relayed {
  readonly socket: Socket;
  /** How the connection ended at the peer: undefined while it is open. */
  end: "FIN" | "ECONNRESET" | undefined;
  received: number;
}

let api: FakeApi;
let relay: Server;
const relayed: Relayed[] = [];
let refusal: MeshError | undefined;

/** The bytes of the connection that the peer has not read, and those that still wait at the sender, as the kernel counts them. */
function queuesOf({ socket }: Relayed): { readonly unread: number; readonly unsent: number } {
  const hex = (port = 0) => port.toString(16).toUpperCase().padStart(4, "0");
  const lines = readFileSync("/proc/self/net/tcp", "latin1").split("\n");
  const queues = (local: number | undefined, remote: number | undefined) => {
    const line = lines.find((each) => {
      const [, from = "", to = ""] = each.trim().split(/\s+/);
      return from.endsWith(`:${hex(local)}`) && to.endsWith(`:${hex(remote)}`);
    });
    const [tx = "0", rx = "0"] = (line?.trim().split(/\s+/)[4] ?? "").split(":");
    return { tx: Number.parseInt(tx, 16) || 0, rx: Number.parseInt(rx, 16) || 0 };
  };
  return {
    unread: queues(socket.localPort, socket.remotePort).rx + socket.readableLength,
    unsent: queues(socket.remotePort, socket.localPort).tx,
  };
}

beforeEach(async () => {
  refusal = undefined;
  relayed.length = 0;
  api = await startFakeApi(
    (req, res) =>
      void req
        .on("error", () => undefined)
        .on("end", () => answerJson(res, 200, {}))
        .resume(),
  );
  relay = createServer((socket) => {
    const one: Relayed = { socket, end: undefined, received: 0 };
    relayed.push(one);
    const upstream = connect(api.port, "127.0.0.1").on("error", () => undefined);
    socket
      .on("data", (chunk: Buffer) => {
        one.received += chunk.length;
        upstream.write(chunk);
        if (one.received > READ_BYTES) socket.pause();
      })
      .once("end", () => {
        one.end ??= "FIN";
      })
      .on("error", ({ code }: NodeJS.ErrnoException) => {
        if (code === "ECONNRESET") one.end ??= code;
      })
      .once("close", () => upstream.destroy());
    upstream.pipe(socket);
  });
  await new Promise<void>((resolve) => relay.listen(0, "127.0.0.1", resolve));
});
afterEach(async () => {
  for (const { socket } of relayed) socket.destroy();
  relay.close();
  await api.close();
});

function setup(path = "") {
  const clock = createFakeClock();
  const apiServer = createApiServer({
    clock,
    log: silentLogger(),
    registry: new Registry(),
    apiServer: `https://127.0.0.1:${(relay.address() as AddressInfo).port}${path}`,
    trust: fixedTrust(api.ca.certPem, "localhost"),
    timeouts: { headersMs: 60_000, bodyMs: 60_000, abandonedMs: ABANDONED_MS },
    mayWrite: () => refusal,
  });
  const send = (method: "GET" | "POST", body: Parameters<typeof asSource>[0] | null, isStreamed = false) => {
    const signal = new CallAbort();
    const target = TARGETS[method];
    const info = parseRequestInfo(method, target);
    const source = body !== null && isStreamed ? asSource(body) : body;
    const call = { method, target, info, headers: {}, body: source, signal, record: createRecord(info) };
    return { signal, reply: apiServer.send(call) };
  };
  return { apiServer, clock, send };
}
type World = ReturnType<typeof setup> & { readonly apiServer: ApiServer };

/** Until the kernel of the peer has taken no more for a while: it asks again from time to time. */
async function untilFull(peer: Relayed): Promise<void> {
  let before = -1;
  let equal = 0;
  await eventually(() => {
    const { unread, unsent } = queuesOf(peer);
    equal = unsent > 0 && unread === before ? equal + 1 : 0;
    before = unread;
    return equal >= 12;
  });
}

/** Sends until the kernel of the peer is full and the kernel of the sender has the rest, whatever their sizes are. */
async function sendUntilBytesWait(client: Socket): Promise<Relayed> {
  for (;;) {
    client.write(BODY.subarray(0, PIECE_BYTES));
    const peer = await eventually(() => relayed.find(({ socket }) => socket.isPaused()) ?? false);
    let [before, equal] = [-1, 0];
    await eventually(() => {
      const { unread } = queuesOf(peer);
      equal = unread === before ? equal + 1 : 0;
      before = unread;
      return equal >= 3;
    });
    if (queuesOf(peer).unsent > 0) return peer;
  }
}

/** A write of which bytes wait at the peer, in the kernel and in the process. */
async function stuckWrite({ send }: World, isStreamed: boolean) {
  const write = send("POST", BODY, isStreamed);
  const failed = write.reply.then(
    () => undefined,
    (error: MeshError) => error.code,
  );
  const peer = await eventually(() => relayed.find(({ socket }) => socket.isPaused()) ?? false);
  await untilFull(peer);
  return { peer, write, failed, unread: queuesOf(peer).unread };
}

const CUTS: readonly (readonly [string, (world: World, write: { readonly signal: CallAbort }) => Promise<unknown>])[] = [
  [
    "the API server at home has not accepted the pod for too long",
    ({ clock }) => {
      refusal = new MeshError("HOME_UNPROVEN", "no");
      return clock.advance(1_000);
    },
  ],
  [
    "its client has gone for the longest time that the cluster may work on it",
    ({ clock }, { signal }) => {
      signal.abort(new Error("gone"));
      return clock.advance(ABANDONED_MS);
    },
  ],
  ["the cluster is not served any more", ({ apiServer }) => apiServer.stop()],
];

describe.each([
  ["whole", false],
  ["streamed", true],
])("a write with a %s body that the cluster has not read is cut by a reset", (_body, isStreamed) => {
  it.each(CUTS)("when %s", async (_when, cut) => {
    const world = setup();
    const { peer, write, failed, unread } = await stuckWrite(world, isStreamed);
    await cut(world, write);
    expect(await failed).toBeDefined();
    const { unsent } = queuesOf(peer);
    const before = peer.received;
    peer.socket.on("pause", () => peer.socket.resume()).resume();
    await eventually(() => expect(peer.end).toBeDefined());
    expect([peer.end, unsent]).toEqual(["ECONNRESET", 0]);
    expect(peer.received - before).toBeLessThanOrEqual(unread);
    await world.apiServer.stop();
  });
});

describe("a tunnel into a pod", () => {
  const SWITCHING = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: spdy/3.1\r\n\r\n";
  /** A proxy that answers every upgrade with a tunnel to the relay. */
  async function startTunnels({ apiServer }: World) {
    const info = parseRequestInfo("POST", `${CONFIG_MAPS}/c/exec`, "spdy/3.1");
    let served: Socket | undefined;
    const server = createHttpServer().on("upgrade", (req, socket: Socket, head) => {
      const signal = new CallAbort();
      served = socket.on("error", () => undefined).once("close", () => signal.abort(new Error("closed")));
      const { path: target } = info;
      const record = createRecord(info);
      const call = { method: "POST", target, info, headers: {}, body: null, upgrade: "spdy/3.1", signal, record };
      void apiServer.upgrade(call).connect?.(call, req, socket, head);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const client = connect((server.address() as AddressInfo).port, "127.0.0.1").on("error", () => undefined);
    client.write("POST /x HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: spdy/3.1\r\n\r\n");
    let text = "";
    client.on("data", (chunk: Buffer) => {
      text += chunk;
    });
    return { server, client, text: () => text, served: () => served };
  }
  beforeEach(() => {
    api.onUpgrade = (_req, socket) => {
      socket.on("error", () => undefined);
      socket.write(SWITCHING);
      socket.pipe(socket);
    };
  });

  it("goes below the path of the URL, carries bytes both ways, and ends in order", async () => {
    const world = setup("/k8s/clusters/c-1");
    const { server, client, text } = await startTunnels(world);
    client.write("hello");
    await eventually(() => expect(text()).toMatch(/101 Switching.*hello$/s));
    expect(api.seen.map(({ url }) => url)).toEqual([`/k8s/clusters/c-1${CONFIG_MAPS}/c/exec`]);
    client.end();
    await eventually(() => expect(relayed[0]?.end).toBe("FIN"));
    server.close();
    await world.apiServer.stop();
  });

  it("is cut by a reset when the API server at home has not accepted the pod for too long, with all that waits", async () => {
    const world = setup();
    const { server, client, text } = await startTunnels(world);
    await eventually(() => expect(text()).toContain("101 Switching"));
    client.write(BODY);
    const peer = await eventually(() => relayed.find(({ socket }) => socket.isPaused()) ?? false);
    await untilFull(peer);
    const { unread } = queuesOf(peer);
    const closed = new Promise((resolve) => client.once("close", resolve));
    refusal = new MeshError("HOME_UNPROVEN", "no");
    await world.clock.advance(1_000);
    await closed;
    const before = peer.received;
    peer.socket.on("pause", () => peer.socket.resume()).resume();
    await eventually(() => expect(peer.end).toBe("ECONNRESET"));
    expect(peer.received - before).toBeLessThanOrEqual(unread);
    server.close();
    await world.apiServer.stop();
  });

  it.each([
    ["soon, if the cluster reads nothing", false],
    ["when the API server at home has not accepted the pod for too long", true],
  ])("is cut by a reset without its client %s", async (_when, isUnproven) => {
    const world = setup();
    api.onUpgrade = (_req, socket) => {
      socket.on("error", () => undefined).resume();
      socket.write(SWITCHING);
    };
    const { server, client, text, served } = await startTunnels(world);
    await eventually(() => expect(text()).toContain("101 Switching"));
    const peer = await sendUntilBytesWait(client);
    const gone = new Promise((resolve) => served()?.once("end", resolve).once("close", resolve));
    client.destroy();
    await gone;
    await untilFull(peer);
    const { unread } = queuesOf(peer);
    const before = peer.received;
    if (isUnproven) refusal = new MeshError("HOME_UNPROVEN", "no");
    await world.clock.advance(isUnproven ? 500 : 1_000);
    peer.socket.on("pause", () => peer.socket.resume()).resume();
    await eventually(() => expect(peer.end).toBe("ECONNRESET"));
    expect(peer.received - before).toBeLessThanOrEqual(unread);
    server.close();
    await world.apiServer.stop();
  });

  it("sends no request after the API server at home has not accepted the pod for too long while it connected", async () => {
    const world = setup();
    relay.once("connection", () => {
      refusal = new MeshError("HOME_UNPROVEN", "no");
    });
    const { server, client } = await startTunnels(world);
    await new Promise((resolve) => client.once("close", resolve));
    expect(api.seen).toEqual([]);
    server.close();
    await world.apiServer.stop();
  });

  it("is cut by a reset while the cluster has not answered the upgrade", async () => {
    const asked = new Promise<void>((resolve) => {
      api.onUpgrade = (_req, socket) => {
        socket.on("error", () => undefined);
        resolve();
      };
    });
    const world = setup();
    const { server, client } = await startTunnels(world);
    await asked;
    const closed = new Promise((resolve) => client.once("close", resolve));
    refusal = new MeshError("HOME_UNPROVEN", "no");
    await world.clock.advance(1_000);
    await closed;
    await eventually(() => expect(relayed[0]?.end).toBe("ECONNRESET"));
    server.close();
    await world.apiServer.stop();
  });
});

it("a connection without a request ends in order, not by a reset", async () => {
  const world = setup();
  api.script = (req, res) => {
    req.resume();
    if (req.method !== "GET") res.setHeader("connection", "close");
    answerJson(res, 200, {});
  };
  discardBody((await world.send("GET", null).reply).body);
  discardBody((await world.send("POST", Buffer.from("{}")).reply).body);
  await eventually(() => expect(relayed.some(({ end }) => end === "FIN")).toBe(true));
  discardBody((await world.send("GET", null).reply).body);
  await world.apiServer.stop();
  await eventually(() => expect(new Set(relayed.map(({ end }) => end))).toEqual(new Set(["FIN"])));
});
