// Freezes inside other clusters, through the proxy and between two scripted API servers: what is refused there, what passes in the next
// cluster and at home, and for which writes a freeze waits.
import { afterEach, beforeEach, expect, it } from "vitest";
import type { ClusterRoute } from "../../../src/mesh/ownership/clusters.ts";
import type { FrozenNamespace } from "../../../src/mesh/ownership/frozen-places.ts";
import { FLUSH_MS } from "../../../src/proxy/api-server/tunnel.ts";
import { readBody } from "../../../src/proxy/http/byte-stream.ts";
import { eventually } from "../../support/eventually.ts";
import { answerJson, type FakeApi, startFakeApi } from "../../support/fake-api.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { snapshot, table } from "../../support/route-table.ts";
import { serveClusters } from "../../support/served-clusters.ts";

const DRAIN_MS = 5_000;
const RULES = [{ namespace: "eu/prod", reason: "restore, ask Anna" }];
/** The pod owns all of each cluster, also namespaces that are not known. */
const ALL = table([], {});

let api: FakeApi;
let world: ReturnType<typeof setup>;
function setup() {
  const home = { leftMs: () => 8_000, authorization: "Bearer of-home" };
  return serveClusters({ clock: createFakeClock(), home });
}
/** How the API servers answer a write; default: 200. */
let answerWrite: ((end: () => void, cut: () => void) => void) | undefined;

beforeEach(async () => {
  answerWrite = undefined;
  api = await startFakeApi((req, res) => {
    req.resume();
    const resources = [
      { name: "configmaps", namespaced: true, kind: "ConfigMap", verbs: ["list", "deletecollection"] },
      { name: "nodes", namespaced: false, kind: "Node", verbs: ["list", "deletecollection"] },
    ];
    if (req.url?.endsWith("/api/v1")) return answerJson(res, 200, { kind: "APIResourceList", groupVersion: "v1", resources });
    const end = () => answerJson(res, 200, { kind: "ConfigMap", apiVersion: "v1", metadata: { name: "c", namespace: "prod" } });
    if (req.method === "GET" || answerWrite === undefined) return end();
    answerWrite(end, () => res.destroy());
  });
  world = setup();
});
afterEach(async () => {
  world.clusters.stop();
  await api.close();
});

const cluster = (name: string): ClusterRoute => ({
  name,
  servers: [new URL(api.url).host],
  drainMs: DRAIN_MS,
  owner: "",
  isFenced: true,
  upstream: { url: `${api.url}/${name}`, ca: api.ca.certPem, serverName: "localhost" },
});
let version = 0;
function enforce(frozen: readonly FrozenNamespace[] = RULES): () => boolean {
  version++;
  const clusterTables = new Map(["eu", "us"].map((name) => [name, ALL]));
  const routes = { version, digest: `d${version}`, clusters: ["eu", "us"].map(cluster), clusterTables, frozen };
  world.enforcers.enforce(snapshot(table([], {}), routes));
  let isDrained = false;
  world.enforcers.whenDrained(() => {
    isDrained = true;
  });
  return () => isDrained;
}
async function ask(method: string, path: string, more: { readonly body?: string; readonly upgrade?: string } = {}) {
  const reply = await world.send(method, path, more).reply;
  const { body } = reply;
  const bytes = body === null ? "" : body instanceof Uint8Array ? body : await readBody(body, 1_000_000);
  return { status: reply.status, text: Buffer.from(bytes).toString(), reply };
}
const inside = (name: string, path: string) => `/_ctrlmesh/clusters/${name}/api/v1/${path}`;
const NEW = (name: string) => JSON.stringify({ metadata: { name } });

const WRITES: readonly [method: string, path: string, more: object][] = [
  ["POST", "namespaces/prod/configmaps", { body: NEW("c") }],
  ["PUT", "namespaces/prod/configmaps/c", { body: NEW("c") }],
  ["PATCH", "namespaces/prod/configmaps/c/status", { body: "{}" }],
  ["DELETE", "namespaces/prod/configmaps/c", {}],
  ["DELETE", "namespaces/prod/configmaps", {}],
  ["DELETE", "configmaps", {}],
  ["POST", "namespaces/prod/pods/p/eviction", { body: "{}" }],
  ["POST", "namespaces/prod/pods/p/exec?command=sh", { upgrade: "spdy/3.1" }],
  ["GET", "namespaces/prod/pods/p/attach", { upgrade: "websocket" }],
  ["GET", "namespaces/prod/pods/p/portforward", { upgrade: "websocket" }],
  ["GET", "namespaces/prod/pods/p/proxy/", {}],
  ["GET", "namespaces/prod/services/s/proxy/", {}],
  ["GET", "nodes/n/proxy/", {}],
  ["POST", "namespaces", { body: NEW("prod") }],
  ["PATCH", "namespaces/prod", { body: "{}" }],
  ["DELETE", "namespaces/prod", {}],
];

it.each(WRITES)("%s %s is refused with the cluster and the command that ends the freeze", async (method, path, more) => {
  enforce();
  const { status, text } = await ask(method, inside("eu", path), more);
  expect([status, JSON.parse(text).message]).toEqual([
    403,
    expect.stringMatching(
      /namespace "prod" of cluster "eu" is frozen: restore, ask Anna; to end that: ctrlmesh thaw prod .* --cluster eu$/,
    ),
  ]);
  expect(api.seen.filter(({ url }) => !url.endsWith("/api/v1"))).toEqual([]);
});

it.each(WRITES)("%s %s passes in the next cluster, and after a thaw", async (method, path, more) => {
  enforce();
  expect((await ask(method, inside("us", path), more)).status).toBeLessThan(300);
  enforce([]);
  expect((await ask(method, inside("eu", path), more)).status).toBeLessThan(300);
});

it("a freeze inside a cluster stops nothing in other namespaces there, at home, and no read", async () => {
  enforce();
  for (const [method, path, more] of [
    ["PUT", "namespaces/team/configmaps/c", { body: "{}" }],
    ["POST", "namespaces", { body: NEW("new") }],
    ["DELETE", "nodes", {}],
    ["GET", "namespaces/prod/configmaps/c", {}],
    ["GET", "namespaces/prod", {}],
  ] as const)
    expect((await ask(method, inside("eu", path), more)).status, `${method} ${path}`).toBe(200);
  expect((await ask("PUT", "/api/v1/namespaces/prod/configmaps/c", { body: "{}" })).status).toBe(200);
});

it("a freeze at home stops nothing in a cluster", async () => {
  enforce([{ namespace: "prod", reason: "x" }]);
  expect((await ask("PUT", inside("eu", "namespaces/prod/configmaps/c"), { body: "{}" })).status).toBe(200);
});

it("a freeze waits for a write that is under way there, and for no other", async () => {
  const { promise: began, resolve: begin } = Promise.withResolvers<() => void>();
  answerWrite = (end) => begin(end);
  enforce([]);
  const written = ask("PUT", inside("eu", "namespaces/prod/configmaps/c"), { body: "{}" });
  const end = await began;
  expect(
    enforce([
      { namespace: "us/prod", reason: "x" },
      { namespace: "eu/team", reason: "x" },
    ])(),
  ).toBe(true);
  const isDrained = enforce();
  expect(isDrained()).toBe(false);
  end();
  expect((await written).status).toBe(200);
  expect(isDrained()).toBe(true);
});

it("a freeze waits drainSeconds for a create of the namespace whose answer is lost", async () => {
  answerWrite = (_, cut) => cut();
  enforce([]);
  expect((await ask("POST", inside("eu", "namespaces"), { body: NEW("prod") })).status).toBe(503);
  const isDrained = enforce();
  await world.clock.advance(DRAIN_MS - 1);
  expect(isDrained()).toBe(false);
  await world.clock.advance(1);
  expect(isDrained()).toBe(true);
});

it("a freeze ends an exec into the namespace, and not one in the next cluster", async () => {
  enforce([]);
  const exec = (name: string) => world.send("POST", inside(name, "namespaces/prod/pods/p/exec"), { upgrade: "spdy/3.1" });
  const [frozen, other] = [exec("eu"), exec("us")];
  const tunnels = [(await frozen.reply).tunnel, (await other.reply).tunnel];
  const isDrained = enforce();
  expect(tunnels.map((tunnel) => tunnel?.signal.aborted)).toEqual([true, false]);
  frozen.signal.abort(new Error("closed")); // as the server does when the client's connection has closed
  await world.clock.advance(FLUSH_MS + DRAIN_MS);
  expect(isDrained()).toBe(true);
  other.signal.abort(new Error("closed"));
});

it("an update that changes nothing of a cluster does not make its watches look for moves", async () => {
  enforce();
  let changes = 0;
  const end = world.enforcers.inside("eu").onChange(() => changes++);
  enforce(RULES.map((each) => ({ ...each }))); // as decoded anew
  enforce([...RULES, { namespace: "us/prod", reason: "x" }, { namespace: "prod", reason: "x" }]);
  expect(changes).toBe(0);
  enforce([]);
  expect(changes).toBe(1);
  end();
  await eventually(() => expect(world.enforcers.isQuiet).toBe(true));
});
