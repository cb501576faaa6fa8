// SIGTERM of the sidecar while watches, tunnels and writes to other clusters are open.
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, expect, it } from "vitest";
import { HELLO } from "../../support/client-hello.ts";
import { type ClusterSidecar, startClusterSidecar } from "../../support/cluster-sidecar.ts";
import { eventually } from "../../support/eventually.ts";
import { answerJson, type FakeApi, startFakeApi } from "../../support/fake-api.ts";

const CLUSTER = "/_ctrlmesh/clusters/eu/api/v1/namespaces/own";
const OBJECT = `${CLUSTER}/configmaps/c`;
const SWITCHING = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: spdy/3.1\r\n\r\n";

let eu: FakeApi;
let answering: Server;
let sidecar: ClusterSidecar;
/** Answers the writes that wait. */
let answerWrites: (() => void)[];

beforeEach(async () => {
  answerWrites = [];
  eu = await startFakeApi((req, res) => {
    req.resume();
    if (req.method !== "GET") answerWrites.push(() => answerJson(res, 200, {}));
    else if (req.url?.includes("watch=")) res.writeHead(200, { "content-type": "application/json" }).flushHeaders();
    else answerJson(res, 200, {});
  });
  eu.onUpgrade = (_req, socket) => void socket.on("error", () => undefined).write(SWITCHING);
  answering = createServer((socket) => void socket.on("error", () => undefined).on("data", () => socket.write("answer")));
  await once(answering.listen(0, "127.0.0.1"), "listening");
  sidecar = await startClusterSidecar({ flags: { "drain-ms": "20000" } }); // a slow machine has time for all steps
  const { port } = answering.address() as AddressInfo;
  await sidecar.route({ tunnels: { us: port }, served: { eu: { url: eu.url, ca: eu.ca.certPem } } });
  await sidecar.proveHome();
});
afterEach(async () => {
  await sidecar?.stop();
  answering?.close();
  await eu?.close();
});

const closed = (socket: Socket | undefined) => socket && once(socket.resume(), "close");

it("ends with 0 as soon as the last write is answered, and does not wait for watches and tunnels", async () => {
  const watch = await sidecar.ask(`${CLUSTER}/configmaps?watch=1`);
  const exec = await sidecar.ask(`${CLUSTER}/pods/p/exec`, {
    method: "POST",
    headers: { connection: "Upgrade", upgrade: "spdy/3.1" },
  });
  const tunnel = await sidecar.connect((answering.address() as AddressInfo).port);
  tunnel.socket.write(HELLO);
  await once(tunnel.socket, "data");
  const write = sidecar.ask(OBJECT, { method: "PUT", body: "{}", headers: { "content-type": "application/json" } });
  await eventually(() => answerWrites.length === 1);
  expect([watch.status, exec.status, tunnel.status]).toEqual([200, 101, 200]);
  const metrics = await sidecar.metrics();
  expect(metrics.sum("ctrlmesh_proxy_open_streams")).toBe(2);
  expect(metrics.sum("ctrlmesh_proxy_egress_open")).toBe(1);

  sidecar.child.kill("SIGTERM");
  await Promise.all([once(watch.answer.resume(), "end"), closed(exec.socket), closed(tunnel.socket)]);
  await eventually(async () => expect(await sidecar.openStreams()).toBe(0));
  expect(sidecar.child.exited).toBe(false);
  for (const answer of answerWrites) answer();
  const { status, answer } = await write;
  answer.resume();
  await sidecar.child.ended;
  expect([status, await sidecar.child.stop()]).toEqual([200, 0]);
  expect(sidecar.child.output()).not.toMatch(/"level":"(error|fatal)"|Unhandled|Error:/);
});

it("goes on to prove that the API server at home accepts the pod, for writes that take long", async () => {
  const write = sidecar.ask(OBJECT, { method: "PUT", body: "{}", headers: { "content-type": "application/json" } });
  await eventually(() => answerWrites.length === 1);
  sidecar.child.kill("SIGTERM");
  await eventually(sidecar.isDraining);
  const before = sidecar.home.seen.length;
  await eventually(
    () =>
      expect(sidecar.home.seen.slice(before).map(({ url }) => url)).toContainEqual(expect.stringContaining("selfsubjectreviews")),
    6_000,
  );
  for (const answer of answerWrites) answer();
  const { status, answer } = await write;
  answer.resume();
  await sidecar.child.ended;
  expect([status, await sidecar.child.stop()]).toEqual([200, 0]);
});
