// A proxy and a manager of different versions, over the bytes of today's contract and of an older one. The older contract is today's
// without the fields that were added later: deltas, stream numbers, epochs and the counts in reports.
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, credentials, Server, ServerCredentials, type ServiceDefinition, type UntypedHandleCall } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { afterEach, beforeEach, expect, it } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { silentLogger } from "../../../src/base/log.ts";
import { createRegistry } from "../../../src/base/metrics.ts";
import { createProxyRegistry } from "../../../src/manager/proxies/proxy-registry.ts";
import { createSnapshotServer } from "../../../src/manager/proxies/snapshot-server.ts";
import { createSession } from "../../../src/proxy/session/create-session.ts";
import type { ManagerMessage, ProxyMessage } from "../../../src/wire/messages.ts";
import { snapshotFromWire, snapshotToWire } from "../../../src/wire/snapshot-codec.ts";
import { eventually } from "../../support/eventually.ts";
import type { ManagerStream } from "../../support/scripted-manager.ts";
import { routes } from "../../support/test-routes.ts";

const NEW_FIELDS = [
  "SnapshotDelta delta = 3;",
  "uint64 stream = 7;",
  "bool takes_deltas = 8;",
  "bool needs_snapshot = 4;",
  "uint32 held = 3;",
  "uint32 draining_writes = 4;",
  "repeated RetainedClass retained = 5;",
  "Promise promise = 5;",
  "Welcome welcome = 4;",
  "uint64 epoch = 9;",
  "bool takes_epochs = 10;",
];
const REST = Array.from({ length: 50 }, (_, index) => `n${index}`);
const pod = { namespace: "shop", name: "shop-0", uid: "uid-1" };

let dir = "";
let stops: (() => unknown)[] = [];
let before: ServiceDefinition = {};

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "version-skew-"));
  stops = [];
  before = await olderContract();
});
afterEach(async () => {
  for (const stop of stops.reverse()) await stop();
  await rm(dir, { recursive: true, force: true });
});

async function olderContract(): Promise<ServiceDefinition> {
  let text = await readFile(new URL("../../../proto/ctrlmesh/v1/mesh.proto", import.meta.url), "utf8");
  for (const field of NEW_FIELDS) {
    expect(text).toContain(field);
    text = text.replace(field, "");
  }
  const path = join(dir, "before.proto");
  await writeFile(path, text);
  const loaded = loadSync(path, { keepCase: false, longs: Number, enums: String, defaults: true, oneofs: true });
  return loaded["ctrlmesh.v1.Mesh"] as ServiceDefinition;
}

it("today's manager sends whole snapshots to an older proxy, and accepts its streams without numbers", async () => {
  const registry = createProxyRegistry({ log: silentLogger() });
  const server = createSnapshotServer({
    listen: { host: "127.0.0.1", port: 0 },
    registry,
    admit: () => ({ kind: "serve" }),
    leadership: { epoch: 1, sawEpoch: () => undefined },
    clock: systemClock,
    log: silentLogger(),
  });
  await server.start(new AbortController().signal);
  stops.push(() => server.stop());
  const client = new Client(`127.0.0.1:${server.port}`, credentials.createInsecure());
  stops.push(() => client.close());
  const method = before.Connect;
  if (method === undefined) throw new Error("the contract has no method Connect");
  const connect = () => {
    const got: ManagerMessage[] = [];
    const stream = client.makeBidiStreamRequest<ProxyMessage, ManagerMessage>(
      method.path,
      (message) => method.requestSerialize(message),
      (bytes) => method.responseDeserialize(bytes) as ManagerMessage,
    );
    stream.on("error", () => undefined);
    stream.on("data", (message: ManagerMessage) => {
      got.push(message);
      if (!("snapshot" in message)) return;
      const { nonce, version } = message.snapshot;
      stream.write({ ack: { nonce, version } });
    });
    return { got, stream };
  };
  const registration = { pod, version: 0, digest: "", proxyVersion: "old", enforced: null, inDoubt: [] };
  // The same pod may have had a newer proxy before, with numbered streams.
  registry.connected(
    "shop/shop-0",
    { ...registration, stream: 1e12, takesDeltas: true },
    { send: () => undefined, end: () => undefined },
  );

  const { got, stream } = connect();
  stream.write({ registration });
  await eventually(
    () => registry.facts("shop/shop-0")?.connected === true && registry.facts("shop/shop-0")?.enforced === undefined,
  );
  await new Promise((resolve) => setImmediate(resolve));
  for (const version of [1, 2]) {
    await eventually(() => {
      registry.publish("shop/shop-0", routes(version, { blue: ["a", `b${version}`], rest: REST }));
      return registry.facts("shop/shop-0")?.enforced?.version === version;
    });
  }
  expect(got.map((message) => ("snapshot" in message ? snapshotFromWire(message.snapshot).version : "?"))).toEqual([1, 2]);
  stream.write({ report: { leader: true, lock: null } });
  await eventually(() => registry.facts("shop/shop-0")?.leader === true);
  expect(registry.facts("shop/shop-0")).toMatchObject({ held: 0, drainingWrites: 0 });
  stream.cancel();
});

it("today's proxy works with an older manager, which sends no deltas and ignores the newer fields", async () => {
  const received: ProxyMessage[] = [];
  const streams: ManagerStream[] = [];
  const server = new Server();
  const connect = (stream: ManagerStream) => {
    streams.push(stream);
    stream.on("data", (message: ProxyMessage) => received.push(message));
    stream.on("error", () => undefined);
  };
  server.addService(before, { Connect: connect as UntypedHandleCall });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
  stops.push(() => server.forceShutdown());
  const session = createSession({
    config: { manager: `127.0.0.1:${port}`, podNamespace: "shop", podName: "shop-0", podUid: "uid-1", dataDir: dir },
    log: silentLogger(),
    clock: systemClock,
    random: () => 0.5,
    registry: createRegistry("proxy", "test"),
    backoff: { baseMs: 20, maxMs: 50 },
  });
  stops.push(() => session.stop());
  await session.start(new AbortController().signal);
  await eventually(() => received.length === 1);
  expect(received[0]).toMatchObject({ registration: { pod, version: 0, digest: "", enforced: null } });
  for (const version of [1, 2]) {
    streams.at(-1)?.write({ snapshot: snapshotToWire(routes(version, { blue: ["a", `b${version}`], rest: REST }), version) });
    await eventually(() => received.some((message) => "ack" in message && message.ack.nonce === version));
  }
  session.setLeader(true);
  session.beginHold("new");
  await eventually(() => received.some((message) => "report" in message && message.report.leader));
  expect(session.current?.view("", "pods").ownershipOf("b2")).toBe("own");
});
