// Clients and API servers that are slow, disconnect or break. The end of a client ends the API server's work at once. A broken API
// server never looks like the end of a list. Bodies of any size pass through bounded memory.
import type { TLSSocket } from "node:tls";
import { afterAll, beforeAll, expect, it } from "vitest";
import { CONFIG_MAPS } from "../../src/kube/client/resources.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";
import { appOfSubsets } from "../support/app-of-subsets.ts";
import { eventually } from "../support/eventually.ts";
import { type FakeKubelet, startFakeKubelet } from "../support/fake-kubelet.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { createManyConfigMaps } from "../support/many-config-maps.ts";
import { type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { memoryOf } from "../support/process-memory.ts";
import { encodeRequest, openRaw, parseAnswer, type RawConnection, type RawTarget, sendRaw } from "../support/raw-client.ts";
import { as, get, PROTOBUF } from "../support/requests.ts";
import { describeWithKube } from "../support/requirements.ts";

const MB = 1024 * 1024;
const BULK_BYTES = 200 * MB;
/** Several times the size of all sockets and buffers between kubelet and client. */
const BUFFERED_BYTES = 32 * MB;
const LOG = "/api/v1/namespaces/team-a/pods/worker/log";
const VIRTUAL_APP = appOfSubsets({ v2: { labels: { version: "v2" }, match: { namespaceRegex: "^canary" } } });

describeWithKube("slow, aborted and broken streams", () => {
  let kube: Kube;
  let mesh: Mesh;
  let pod: MeshPod;
  let kubelet: FakeKubelet;
  let direct: RawTarget;
  let proxied: RawTarget;
  const open = new Set<TLSSocket>();

  beforeAll(async () => {
    kube = await startKube();
    mesh = await startMesh({ kube });
    for (const name of ["team-a", "canary-eu"]) await mesh.createNamespace(name);
    await mesh.apply(VIRTUAL_APP);
    kubelet = await startFakeKubelet(kube.kubeconfig);
    await kubelet.createPod("team-a", "worker");
    await createManyConfigMaps(mesh.client, { count: 200, namespaces: ["team-a", "canary-eu"] });
    await createLargeConfigMaps(mesh.client, "team-a");
    pod = await mesh.addPod({ name: "foo-0" });
    direct = { url: kube.server, caPem: kube.caPem, token: kube.token };
    proxied = { url: pod.proxyUrl, caPem: pod.proxyCaPem, token: kube.token };
  });
  afterAll(async () => {
    for (const socket of open) socket.destroy();
    await kubelet?.stop();
    await mesh?.stop();
    await kube?.stop();
  });

  const begin = async (target: string, accept?: string): Promise<RawConnection> => {
    const connection = await openRaw(proxied);
    open.add(connection.socket);
    connection.socket.write(encodeRequest(proxied, get(target, accept, [["Connection", "close"]])).head);
    await connection.until((bytes) => (bytes.includes("\r\n\r\n") ? true : undefined));
    expect(connection.received().toString("latin1", 0, 15)).toContain("200");
    return connection;
  };
  /** The number of long-running requests in the API server's own metrics. */
  const watchesOf = async (resource: string): Promise<number> => {
    const { body } = await sendRaw(direct, get("/metrics"));
    const lines = body
      .toString()
      .split("\n")
      .filter((line) => line.startsWith("apiserver_longrunning_requests{"));
    const about = lines.filter((line) => line.includes(`resource="${resource}"`) && /verb="(WATCH|CONNECT|GET)"/.test(line));
    return about.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
  };

  it("watches end at the API server as soon as their clients disconnect, narrowed or not", async () => {
    const before = await watchesOf("configmaps");
    const paths = [
      "/api/v1/configmaps?watch=1&labelSelector=none",
      "/api/v1/namespaces/team-a/configmaps?watch=1&labelSelector=none",
      "/api/v1/namespaces/canary-eu/configmaps?watch=1&labelSelector=none",
    ];
    const connections = await Promise.all(
      Array.from({ length: 30 }, (_, index) => begin(paths[index % 3] as string, index % 2 ? PROTOBUF : undefined)),
    );
    expect(await watchesOf("configmaps")).toBe(before + 30);
    for (const { socket } of connections) socket.destroy();
    await eventually(async () => expect(await watchesOf("configmaps")).toBe(before), { withinMs: 2_000 });
  });

  it("followed logs arrive line by line, and end at the kubelet when their client disconnects", async () => {
    const connection = await begin(`${LOG}?follow=true`);
    const startedMs = performance.now();
    await connection.until((bytes) => (bytes.includes("line 3 of worker\n") ? true : undefined));
    expect(performance.now() - startedMs).toBeLessThan(8_000); // a line comes every 50 ms
    expect((await kubelet.stats()).logs).toBe(1);
    connection.socket.destroy();
    await eventually(async () => expect((await kubelet.stats()).logs).toBe(0), { withinMs: 2_000 });
  });

  it("a response of 200 MB waits for its slow reader, arrives complete, and is not buffered by the proxy", async () => {
    const rssMb = () => memoryOf(pod.proxy.pid).rssMb;
    const before = rssMb();
    const { logBytes } = await kubelet.stats();
    const written = async () => (await kubelet.stats()).logBytes - logBytes;
    const reader = await slowReader(proxied, `${LOG}?limitBytes=${BULK_BYTES}`);
    open.add(reader.socket);
    const unreadTotal = await whenUnchanged(written);
    expect(unreadTotal).toBeLessThan(BUFFERED_BYTES);
    expect(rssMb() - before).toBeLessThan(40);
    // The proxy serves other requests meanwhile.
    expect((await sendRaw(proxied, get("/api/v1/namespaces/team-a/configmaps/cm-000000"))).status).toBe(200);
    let highest = 0;
    const body = await reader.finish(() => {
      highest = Math.max(highest, rssMb());
    });
    expect(body).toEqual({ bytes: BULK_BYTES, whole: true, isAsWritten: true });
    expect(highest - before).toBeLessThan(60);
  });

  it("a large response ends at the kubelet as soon as its client disconnects", async () => {
    const reader = await slowReader(proxied, `${LOG}?limitBytes=${BULK_BYTES}`);
    await eventually(async () => expect((await kubelet.stats()).logs).toBe(1));
    reader.socket.destroy();
    await eventually(async () => expect((await kubelet.stats()).logs).toBe(0), { withinMs: 2_000 });
  });

  it("unread watches take bounded memory, delay no other request, and end with their clients", async () => {
    const watches = await watchesOf("configmaps");
    const before = memoryOf(pod.proxy.pid).rssMb;
    const slow = await Promise.all(
      ["application/json", PROTOBUF, as("Table")].map((accept) => begin("/api/v1/configmaps?watch=1&resourceVersion=0", accept)),
    );
    for (const { socket } of slow) socket.pause();
    for (let turn = 0; turn < 10; turn++) {
      const body = { data: { turn: String(turn) } };
      await mesh.client.patch(CONFIG_MAPS, { namespace: "team-a", name: "large-0" }, { type: "merge", body });
    }
    expect((await sendRaw(proxied, get("/api/v1/namespaces/team-a/configmaps/cm-000000"))).status).toBe(200);
    expect(memoryOf(pod.proxy.pid).rssMb - before).toBeLessThan(80);
    expect(await watchesOf("configmaps")).toBe(watches + 3);
    for (const { socket } of slow) socket.destroy();
    await eventually(async () => expect(await watchesOf("configmaps")).toBe(watches), { withinMs: 2_000 });
  });

  // This test is the last, since it stops the API server.
  it("lists and logs break off and watches end at a frame when the API server crashes, and requests work after its restart", async () => {
    const narrowed = await slowReader(proxied, "/api/v1/configmaps");
    const untouched = await slowReader(proxied, "/api/v1/namespaces/team-a/configmaps");
    const logs = await begin(`${LOG}?follow=true`);
    const watches = await Promise.all([
      begin("/api/v1/configmaps?watch=1&resourceVersion=0"),
      begin("/api/v1/configmaps?watch=1&resourceVersion=0", PROTOBUF),
      begin("/api/v1/namespaces/team-a/configmaps?watch=1&resourceVersion=0"),
    ]);
    // An answer without an event has no frame.
    for (const watch of watches) await eventually(() => watch.received().includes("ADDED"));
    for (const { socket } of watches) socket.pause(); // in the middle of an event of 1 MB
    await kube.crash();
    for (const each of [narrowed, untouched]) {
      const { bytes, whole } = await each.finish();
      expect([whole, bytes < 64 * MB]).toEqual([false, true]);
    }
    for (const { socket } of watches) socket.resume();
    for (const connection of [logs, ...watches]) await connection.ended;
    expect(parseAnswer(logs.received())?.whole).toBe(false);
    for (const connection of watches) {
      const answer = parseAnswer(connection.received());
      expect(answer?.whole).toBe(true);
      expect(atFrameBoundary(answer?.body ?? Buffer.alloc(0))).toBe(true);
    }
    const one = "/api/v1/namespaces/team-a/configmaps/cm-000000";
    for (const path of [one, "/api/v1/configmaps?watch=1", "/api"]) {
      const { status, headers } = await sendRaw(proxied, get(path));
      expect([path, status, new Map(headers).get("retry-after")]).toEqual([path, 503, "1"]);
    }
    await kube.restart();
    expect((await sendRaw(proxied, get(one))).status).toBe(200);
    const again = await begin("/api/v1/configmaps?watch=1&fieldSelector=metadata.name%3Dafter-outage");
    await mesh.client.create(CONFIG_MAPS, { metadata: { namespace: "team-a", name: "after-outage" } });
    await eventually(() => again.received().includes("after-outage"));
    again.socket.destroy();
  });
});

// 64 MB are more than all buffers on the way to a client that does not read.
async function createLargeConfigMaps(client: KubeClient, namespace: string): Promise<void> {
  const data = { large: "x".repeat(1_000_000) };
  for (let index = 0; index < 64; index++)
    await client.create(CONFIG_MAPS, { metadata: { namespace, name: `large-${index}` }, data });
}

function atFrameBoundary(body: Buffer): boolean {
  if (body[0] === 0x7b)
    return body.at(-1) === 0x0a && JSON.parse(body.subarray(body.lastIndexOf("\n", body.length - 2) + 1).toString()) !== null;
  let at = 0;
  while (at < body.length) at += 4 + body.readUInt32BE(at);
  return at === body.length && at > 0;
}

interface SlowReader {
  readonly socket: TLSSocket;
  /** Reads to the end. */
  finish(onChunk?: () => void): Promise<{ readonly bytes: number; readonly whole: boolean; readonly isAsWritten: boolean }>;
}

/** Sends a request and reads the head of the answer, but no body until finish(). Stores no bytes. */
async function slowReader(target: RawTarget, path: string): Promise<SlowReader> {
  const connection = await openRaw(target);
  const { socket } = connection;
  socket.write(encodeRequest(target, get(path)).head);
  await connection.until((bytes) => (bytes.includes("\r\n\r\n") ? true : undefined));
  socket.pause();
  const early = connection.received();
  socket.removeAllListeners("data");
  return {
    socket,
    async finish(onChunk = () => undefined) {
      const counter = new ChunkCounter(early);
      socket.on("data", (chunk: Buffer) => {
        counter.push(chunk);
        if (counter.whole) socket.destroy();
        onChunk();
      });
      socket.resume();
      await connection.ended;
      return { bytes: counter.bytes, whole: counter.whole, isAsWritten: counter.isAsWritten };
    },
  };
}

/** Counts the bytes of a body in chunks or with a length, and compares them with the bytes that the fake kubelet writes. */
class ChunkCounter {
  bytes = 0;
  whole = false;
  isAsWritten = true;
  #rest: Buffer;
  #left: number;
  readonly #chunked: boolean;

  constructor(early: Buffer) {
    const end = early.indexOf("\r\n\r\n") + 4;
    const length = /content-length: (\d+)/i.exec(early.toString("latin1", 0, end))?.[1];
    this.#chunked = length === undefined;
    this.#left = Number(length ?? 0);
    this.#rest = Buffer.alloc(0);
    this.push(early.subarray(end));
  }

  push(chunk: Buffer): void {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    this.#rest = Buffer.alloc(0);
    while (bytes.length > 0 && !this.whole) {
      if (this.#left > 0) {
        const part = bytes.subarray(0, this.#left);
        this.#check(part);
        this.#left -= part.length;
        bytes = bytes.subarray(part.length);
        if (this.#left === 0 && !this.#chunked) this.whole = true;
        continue;
      }
      if (bytes.length < 2) break;
      const from = bytes[0] === 0x0d ? 2 : 0;
      const line = bytes.indexOf("\r\n", from, "latin1");
      if (line < 0) break;
      this.#left = Number.parseInt(bytes.toString("latin1", from, line), 16);
      if (this.#left === 0) this.whole = true;
      bytes = bytes.subarray(line + 2);
    }
    this.#rest = Buffer.from(bytes);
  }

  #check(part: Buffer): void {
    if (part.length > 0 && part[0] !== "0123456789abcdef".charCodeAt(this.bytes % 16)) this.isAsWritten = false;
    this.bytes += part.length;
  }
}

/** The number once it has not changed for half a second. */
async function whenUnchanged(read: () => Promise<number>): Promise<number> {
  let last = -1;
  let sinceMs = performance.now();
  return eventually(async () => {
    const now = await read();
    if (now !== last) sinceMs = performance.now();
    last = now;
    return performance.now() - sinceMs > 500 && now > 0 ? now : Promise.reject(new Error(`still growing: ${now}`));
  });
}
