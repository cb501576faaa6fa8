// The health listener of both services over real sockets: what any pod of the cluster may do to it.
import { Agent, type RequestOptions, request } from "node:http";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { createHealthServer, type HealthServer } from "../../src/base/health-server.ts";
import { createRegistry } from "../../src/base/metrics.ts";
import { eventually } from "../support/eventually.ts";
import { openHostileConnections } from "../support/hostile-connections.ts";

/** A constant of src/base/health-server.ts: how long a client may take to read an answer. */
const ANSWER_MS = 10_000;

let server: HealthServer;
beforeEach(async () => {
  server = createHealthServer({
    listen: { host: "127.0.0.1", port: 0 },
    registry: createRegistry("test", "0"),
    notReady: () => undefined,
  });
  await server.start(new AbortController().signal);
});
afterEach(() => server.stop());

/** The status of a probe, as a kubelet sends it. */
function probe(headers: Readonly<Record<string, string>> = {}, more: RequestOptions = {}): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const req = request({ host: "127.0.0.1", port: server.port, path: "/healthz", agent: false, headers, ...more }, (res) => {
      res.resume().once("end", () => resolve(res.statusCode));
    });
    req.on("error", reject).end();
  });
}

it("1,000 unfinished requests of one pod hold 64 connections, and every probe is answered", async () => {
  const hostile = openHostileConnections({
    port: server.port,
    from: "127.0.0.9",
    count: 1_000,
    send: "GET /metrics HTTP/1.1\r\nhost: x\r\nx-slow: ",
    againMs: 2_000,
  });
  await eventually(() => hostile.tried > 1_000, 60_000);
  const statuses: unknown[] = [];
  for (let each = 0; each < 20; each++) statuses.push(await probe());
  expect(statuses).toEqual(Array.from({ length: 20 }, () => 200));
  await eventually(() => hostile.open <= 64 + 8, 60_000); // some are open here and closed there already
  hostile.stop();
});

it("a scrape that is not read is cut off after a time, and ten scrapes at once are rendered once", async () => {
  let renderings = 0;
  const registry = createRegistry("test", "0");
  const page = "x".repeat(8 * 1024 * 1024);
  Object.assign(registry, { metrics: async () => `${++renderings}${page}` });
  const listen = { host: "127.0.0.1", port: 0 };
  let cutOff = 0;
  const clock = {
    ...systemClock,
    monotonicMs: () => 0, // however long the ten take, a page is not rendered again within a second
    after: (ms: number, run: () => void) =>
      systemClock.after(ms / 10, () => {
        run();
        if (ms === ANSWER_MS) cutOff++;
      }),
  };
  const large = createHealthServer({ listen, registry, notReady: () => undefined, clock });
  await large.start(new AbortController().signal);
  const from = { host: "127.0.0.1", port: large.port, localAddress: "127.0.0.9" };
  const sockets = Array.from({ length: 10 }, () => connect(from).on("error", () => undefined));
  for (const socket of sockets) socket.pause().write("GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n");
  const closed = sockets.map((socket) => new Promise<void>((resolve) => socket.once("close", () => resolve())));
  await eventually(() => cutOff === 10, 30_000);
  for (const socket of sockets) socket.resume(); // only so that the end is seen
  await Promise.all(closed);
  expect(Math.max(...sockets.map(({ bytesRead }) => bytesRead))).toBeLessThan(page.length);
  expect(renderings).toBe(1);
  await large.stop();
});

it.each([
  ["each on a connection of its own", false],
  ["on one connection", true],
])("of 300 scrapes of one pod, %s, few are answered, and every probe of others is", async (_, keepAlive) => {
  // On a slow machine 300 scrapes take so long that more of them are within the pace.
  let elapsedMs = 0;
  const clock = { ...systemClock, monotonicMs: () => elapsedMs };
  const listen = { host: "127.0.0.1", port: 0 };
  await server.stop();
  server = createHealthServer({ listen, registry: createRegistry("test", "0"), notReady: () => undefined, clock });
  await server.start(new AbortController().signal);
  const agent = new Agent({ keepAlive, maxSockets: 1 });
  const scrape = () => probe({}, { localAddress: "127.0.0.9", path: "/metrics", agent }).catch(() => "cut off");
  const answers: unknown[] = [];
  for (let each = 0; each < 300; each++) {
    answers.push(await scrape());
    elapsedMs += 5;
    if (each % 30 === 0) expect(await probe({}, { localAddress: `127.0.0.${20 + each / 30}` })).toBe(200);
  }
  agent.destroy();
  const answered = answers.filter((status) => status === 200).length;
  expect(answered).toBeGreaterThan(20);
  expect(answered).toBeLessThan(200);
});

it("a kubelet's probes of its largest rate are answered", async () => {
  for (let each = 0; each < 30; each++) expect(await probe({}, { localAddress: "127.0.0.10" })).toBe(200);
});

it("a request that waits for 100 Continue is answered, and one with another expectation is refused", async () => {
  expect(await probe({ expect: "100-continue" })).toBe(200);
  expect(await probe({ expect: "x" })).toBe(417);
});

it("a head above 4 KiB is refused, and one of a probe with many headers is not", async () => {
  expect(await probe({ "x-large": "x".repeat(5_000) })).toBe(431);
  expect(await probe({ "x-large": "x".repeat(3_000) })).toBe(200);
});

it("an unfinished head and a connection without a byte end after their time", { timeout: 30_000 }, async () => {
  const sockets = ["", "GET /healthz HTTP/1.1\r\nhost: x\r\n"].map((text) => {
    const socket = connect(server.port, "127.0.0.1", () => socket.write(text));
    return socket.resume();
  });
  await eventually(() => sockets.every(({ destroyed, readyState }) => destroyed || readyState === "closed"), 20_000);
});

it("a start-up probe that gives a time is answered at the start, or with 500 after that time", async () => {
  let reason: string | undefined = "no routes yet";
  const listen = { host: "127.0.0.1", port: 0 };
  const starting = createHealthServer({ listen, registry: createRegistry("test", "0"), notReady: () => reason });
  await starting.start(new AbortController().signal);
  const ask = (query: string) => probe({}, { port: starting.port, path: `/startupz${query}` });
  expect(await ask("")).toBe(500);
  expect(await ask("?seconds=x")).toBe(500);
  const beganMs = performance.now();
  expect(await ask("?seconds=0.2")).toBe(500);
  expect(performance.now() - beganMs).toBeGreaterThan(190);
  const waiting = ask("?seconds=20");
  await sleep(100);
  reason = undefined;
  expect(await waiting).toBe(200);
  expect(performance.now() - beganMs).toBeLessThan(10_000);
  await starting.stop();
});
