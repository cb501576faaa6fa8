// Requests to other clusters through the proxy, between its routes and two scripted API servers: what reaches a cluster, what is
// refused, and which writes keep routes from being acknowledged.
import type { IncomingMessage, ServerResponse } from "node:http";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ClusterRoute } from "../../../src/mesh/ownership/clusters.ts";
import type { Snapshot } from "../../../src/mesh/ownership/snapshot.ts";
import type { RouteTable } from "../../../src/mesh/ownership/table.ts";
import { FLUSH_MS } from "../../../src/proxy/api-server/tunnel.ts";
import { readBody } from "../../../src/proxy/http/byte-stream.ts";
import type { Reply } from "../../../src/proxy/http/handler.ts";
import { eventually } from "../../support/eventually.ts";
import { answerJson, type FakeApi, startFakeApi } from "../../support/fake-api.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { snapshot, subset, table } from "../../support/route-table.ts";
import { serveClusters } from "../../support/served-clusters.ts";

const DRAIN_MS = 5_000;
/** More bytes than the kernel holds for a connection whose peer does not read. */
const LARGER_THAN_SOCKETS = 32 * 1024 * 1024;
const OWN: RouteTable = table([subset("blue")], { own: [0], theirs: [] });

let api: FakeApi;
let provenMs: number;
/** The API server at home has accepted a token of the pod before. */
let isAccepted: boolean;
const reports: unknown[] = [];

function setup(more: { readonly seesEgress?: boolean } = {}) {
  const home = { leftMs: () => provenMs, authorization: isAccepted ? "Bearer of-home" : undefined };
  const onReport = (seen: unknown) => reports.push(seen);
  return serveClusters({ clock: createFakeClock(), home: more.seesEgress === false ? undefined : home, onReport });
}
type World = ReturnType<typeof setup>;

const cluster = (): ClusterRoute => ({
  name: "eu",
  servers: [new URL(api.url).host],
  drainMs: DRAIN_MS,
  owner: "",
  isFenced: true,
  upstream: { url: `${api.url}/k8s/clusters/c-1`, ca: api.ca.certPem, serverName: "localhost" },
});
const enforce = ({ enforcers }: World, of: RouteTable | undefined, more: Partial<Snapshot> = {}, version = 1) =>
  enforcers.enforce(
    snapshot(table([], {}), {
      subset: "blue",
      version,
      digest: `digest-${version}`,
      clusters: [cluster()],
      ...(of && { clusterTables: new Map([["eu", of]]) }),
      ...more,
    }),
  );

async function textOf(reply: Reply): Promise<string> {
  const { body } = reply;
  if (body === null) return "";
  return Buffer.from(body instanceof Uint8Array ? body : await readBody(body, 1_000_000)).toString();
}
const answerOf = async (asked: { readonly reply: Promise<Reply> }) => {
  const reply = await asked.reply;
  return [reply.status, await textOf(reply)] as const;
};

const CONFIG_MAPS = "/_ctrlmesh/clusters/eu/api/v1/namespaces/own/configmaps";
const THEIRS = "/_ctrlmesh/clusters/eu/api/v1/namespaces/theirs/configmaps";

/** As an API server answers discovery and everything else. */
function answer(req: IncomingMessage, res: ServerResponse): void {
  req.resume();
  const resources = [{ name: "configmaps", namespaced: true, kind: "ConfigMap", verbs: ["list"] }];
  if (req.url?.endsWith("/api/v1")) answerJson(res, 200, { kind: "APIResourceList", groupVersion: "v1", resources });
  else answerJson(res, 200, { kind: "ConfigMap", apiVersion: "v1", metadata: { name: "c", namespace: "own" } });
}

beforeEach(async () => {
  provenMs = 8_000;
  isAccepted = true;
  reports.length = 0;
  api = await startFakeApi(answer);
});
afterEach(() => api.close());

describe("a request to another cluster", () => {
  it("reaches its API server behind the prefix of the URL, with the caller's token, and not the one at home", async () => {
    const world = setup();
    enforce(world, OWN);
    expect((await answerOf(world.send("GET", `${CONFIG_MAPS}/c`)))[0]).toBe(200);
    expect(api.seen).toMatchObject([
      { url: "/k8s/clusters/c-1/api/v1/namespaces/own/configmaps/c", headers: { authorization: "Bearer of-eu" } },
    ]);
    expect((await answerOf(world.send("GET", "/api/v1/pods")))[0]).toBe(200);
    expect(world.atHome).toEqual(["/api/v1/pods"]);
    world.clusters.stop();
  });

  it("reaches the right one of several behind one gateway, each with owners of its own", async () => {
    const world = setup();
    const behind = (name: string) => ({ ...cluster(), name, upstream: { ...cluster().upstream, url: `${api.url}/${name}` } });
    const theirs = table([subset("blue")], { own: [], theirs: [0] });
    const clusterTables = new Map([
      ["eu", OWN],
      ["us", theirs],
    ]);
    enforce(world, undefined, { clusters: [behind("eu"), behind("us")], clusterTables });
    const inUs = (path: string) => path.replace("/eu/", "/us/");
    const codes = [CONFIG_MAPS, THEIRS, inUs(CONFIG_MAPS), inUs(THEIRS)].map(async (path) => {
      return (await answerOf(world.send("PUT", `${path}/c`, { body: "{}" })))[0];
    });
    expect(await Promise.all(codes)).toEqual([200, 403, 403, 200]);
    expect(api.seen.map(({ url }) => url).sort()).toEqual([
      "/eu/api/v1/namespaces/own/configmaps/c",
      "/us/api/v1/namespaces/theirs/configmaps/c",
    ]);
    world.clusters.stop();
  });

  it("is refused in a namespace of another subset", async () => {
    const world = setup();
    enforce(world, OWN);
    const [code, text] = await answerOf(world.send("POST", THEIRS, { body: "{}" }));
    expect([code, JSON.parse(text).reason]).toEqual([403, "Forbidden"]);
    expect(api.seen).toEqual([]);
    world.clusters.stop();
  });

  it.each([
    ["/_ctrlmesh/clusters/us/api", 404, "is not one that the app of this pod divides"],
    ["/_ctrlmesh/clusters/", 404, "serves only /_ctrlmesh/clusters/NAME/"],
    ["/_ctrlmesh/clusters/EU/api", 404, "serves only"],
    ["/_ctrlmesh/clusters/e%75/api", 404, "serves only"],
    ["/_ctrlmesh/clusters/../api", 404, "serves only"],
    ["/_ctrlmesh/clusters/eu/../us/api", 400, "path"],
    ["/_ctrlmesh/", 404, "serves only"],
  ])("under %s is answered with %i", async (path, code, why) => {
    const world = setup();
    enforce(world, OWN);
    const [got, text] = await answerOf(world.send("GET", path));
    expect([got, JSON.parse(text).message]).toEqual([code, expect.stringContaining(why)]);
    expect([api.seen, world.atHome]).toEqual([[], []]);
    world.clusters.stop();
  });

  it("is answered with 503 and the reason before the first routes, and while no rule of the app is about clusters", async () => {
    const world = setup();
    expect(await answerOf(world.send("GET", CONFIG_MAPS))).toEqual([503, expect.stringContaining("this pod has no routes yet")]);
    enforce(world, undefined, { clusters: undefined });
    expect(await answerOf(world.send("GET", CONFIG_MAPS))).toEqual([503, expect.stringContaining("no rule of this pod's app")]);
    world.clusters.stop();
  });

  it("is answered with 503 while nobody knows the namespaces, and without egress; with 404 if only tunnels lead there", async () => {
    const world = setup();
    enforce(world, undefined);
    const [code, text] = await answerOf(world.send("GET", CONFIG_MAPS));
    expect([code, text]).toEqual([503, expect.stringContaining("the manager has not listed its namespaces")]);
    enforce(world, undefined, { clusters: [{ ...cluster(), upstream: undefined }] }, 2);
    expect(await answerOf(world.send("GET", CONFIG_MAPS))).toEqual([404, expect.stringContaining("interception Tunnel")]);
    enforce(world, undefined, { clusters: [{ ...cluster(), upstream: undefined, isOpen: true }] }, 3);
    expect(await answerOf(world.send("GET", CONFIG_MAPS))).toEqual([404, expect.stringContaining("interception None")]);
    const blind = setup({ seesEgress: false });
    enforce(blind, OWN);
    expect(await answerOf(blind.send("GET", CONFIG_MAPS))).toEqual([503, expect.stringContaining("ctrlmesh.kruise.io/egress")]);
  });

  it.each([
    ["GET", "/_ctrlmesh/clusters/eu/clusters/root:shop/api/v1/configmaps"],
    ["POST", "/_ctrlmesh/clusters/eu/clusters/root:shop/apis/apps/v1/namespaces/theirs/deployments"],
    ["DELETE", "/_ctrlmesh/clusters/eu/k8s/theirs"],
    ["GET", "/_ctrlmesh/clusters/eu/api/v1/namespaces/own/configmaps/%252e%252e%252ftheirs"],
    ["PUT", "/_ctrlmesh/clusters/eu/api/v1/namespaces/own/configmaps/..;/..;/theirs"],
    ["GET", "/_ctrlmesh/clusters/eu/version/%252e%252e"],
    ["DELETE", "/_ctrlmesh/clusters/eu/apis/example.com/v1/things%23x/name"],
    ["DELETE", "/_ctrlmesh/clusters/eu/apis/example.com/v1/things%3fx/name"],
    ["DELETE", "/_ctrlmesh/clusters/eu/apis/example.com/v1/things%3bx/name"],
  ])("for the API of a further cluster behind its server is refused: %s %s", async (method, target) => {
    const world = setup();
    enforce(world, OWN);
    expect(await answerOf(world.send(method, target))).toEqual([405, expect.stringContaining("begin with /api or /apis")]);
    expect(api.seen).toEqual([]);
    world.clusters.stop();
  });

  it.each(["/version", "/openapi/v3/apis/apps/v1", "/apis", "/"])("for no resource is sent as it is: %s", async (path) => {
    const world = setup();
    enforce(world, OWN);
    expect((await answerOf(world.send("GET", `/_ctrlmesh/clusters/eu${path}`)))[0]).toBe(200);
    expect(api.seen).toMatchObject([{ url: `/k8s/clusters/c-1${path}` }]);
    world.clusters.stop();
  });

  it.each([
    ["POST", "exec?command=sh", "spdy/3.1"],
    ["GET", "portforward", "websocket"],
    ["GET", "proxy/", undefined],
  ])("that reaches into a pod is one of the pod's namespace, and needs home: %s %s", async (method, subresource, upgrade) => {
    const world = setup();
    enforce(world, OWN);
    const ask = async (namespace: string) => {
      const target = `/_ctrlmesh/clusters/eu/api/v1/namespaces/${namespace}/pods/p/${subresource}`;
      return (await answerOf(world.send(method, target, upgrade === undefined ? {} : { upgrade })))[0];
    };
    expect(await ask("own")).toBe(upgrade === undefined ? 200 : 101);
    expect(await ask("theirs")).toBe(403);
    provenMs = 0;
    expect(await ask("own")).toBe(503);
    expect(api.seen).toHaveLength(upgrade === undefined ? 1 : 0);
    world.clusters.stop();
  });

  it("that becomes a tunnel ends when its namespace moves, and counts for drainSeconds", async () => {
    const world = setup();
    enforce(world, OWN);
    const target = "/_ctrlmesh/clusters/eu/api/v1/namespaces/own/pods/p/exec";
    const { reply, signal } = world.send("POST", target, { upgrade: "spdy/3.1" });
    const { tunnel } = await reply;
    let isDrained = false;
    enforce(world, table([subset("blue")], { own: [], theirs: [0] }), {}, 2);
    world.enforcers.whenDrained(() => {
      isDrained = true;
    });
    expect([tunnel?.signal.aborted, isDrained]).toEqual([true, false]);
    signal.abort(new Error("closed")); // as the server does when the client's connection has closed
    await world.clock.advance(FLUSH_MS + DRAIN_MS - 1);
    expect(isDrained).toBe(false);
    await world.clock.advance(1);
    expect(isDrained).toBe(true);
    world.clusters.stop();
  });
});

describe("while the API server at home does not accept the pod", () => {
  it("says what to do if it has not accepted a token of the pod yet", async () => {
    isAccepted = false;
    const world = setup();
    enforce(world, OWN);
    provenMs = 0;
    const [code, text] = await answerOf(world.send("POST", CONFIG_MAPS, { body: "{}" }));
    expect([code, text]).toEqual([503, expect.stringContaining("first send a request to that API server")]);
    world.clusters.stop();
  });

  it("no write reaches the cluster, also none that waits for a connection; reads do", async () => {
    const world = setup();
    enforce(world, OWN);
    const waiting = world.send("POST", CONFIG_MAPS, { body: "{}" });
    provenMs = 0; // the connection is not made yet
    expect(await answerOf(waiting)).toEqual([503, expect.stringContaining("the API server at home has not accepted this pod")]);
    expect((await answerOf(world.send("DELETE", `${CONFIG_MAPS}/c`)))[0]).toBe(503);
    expect((await answerOf(world.send("GET", `${CONFIG_MAPS}/c`)))[0]).toBe(200);
    expect(api.seen.map(({ method }) => method)).toEqual(["GET"]);
    provenMs = 1;
    expect((await answerOf(world.send("POST", CONFIG_MAPS, { body: "{}" })))[0]).toBe(200);
    world.clusters.stop();
  });

  it("a write whose bytes the cluster has not taken yet is cut within a second, and counts for drainSeconds", async () => {
    const world = setup();
    let takeTheRest = () => {};
    let isWhole = false;
    api.script = (req, res) => {
      if (req.method === "GET") return answer(req, res);
      req
        .on("error", () => undefined)
        .on("end", () => {
          isWhole = true;
          answerJson(res, 200, {});
        });
      takeTheRest = () => void req.resume(); // until then the connection is full
    };
    enforce(world, OWN);
    const write = world.send("POST", CONFIG_MAPS, { body: "x".repeat(LARGER_THAN_SOCKETS) });
    await eventually(() => api.seen.some(({ method }) => method === "POST"));
    provenMs = 0;
    await world.clock.advance(1_000);
    takeTheRest();
    expect((await answerOf(write))[0]).toBe(503);
    await eventually(() => api.open === 0);
    expect(isWhole).toBe(false);
    expect(world.enforcers.isQuiet).toBe(false);
    await world.clock.advance(DRAIN_MS);
    expect(world.enforcers.isQuiet).toBe(true);
    world.clusters.stop();
  });
});

describe("routes that take a namespace away are not acknowledged", () => {
  const lost = table([subset("green")], { own: [0], theirs: [] });
  const drained = (world: World) => {
    let isDrained = false;
    world.enforcers.whenDrained(() => {
      isDrained = true;
    });
    return () => isDrained;
  };

  it("while a write there has no answer", async () => {
    const world = setup();
    let finish = () => {};
    api.script = (req, res) => {
      if (req.method === "GET") return answer(req, res);
      finish = () => answerJson(res, 200, {});
    };
    enforce(world, OWN);
    const write = world.send("PUT", `${CONFIG_MAPS}/c`, { body: "{}" });
    await eventually(() => api.seen.some(({ method }) => method === "PUT"));
    enforce(world, lost, {}, 2);
    const isDrained = drained(world);
    expect(isDrained()).toBe(false);
    finish();
    expect((await write.reply).status).toBe(200);
    expect(isDrained()).toBe(true);
    world.clusters.stop();
  });

  it("for drainSeconds after a write of which nobody knows whether it arrived", async () => {
    const world = setup();
    api.script = (req, res) => (req.method === "GET" ? answer(req, res) : res.destroy());
    enforce(world, OWN);
    expect((await answerOf(world.send("PUT", `${CONFIG_MAPS}/c`, { body: "{}" })))[0]).toBe(503);
    enforce(world, lost, {}, 2);
    const isDrained = drained(world);
    await world.clock.advance(DRAIN_MS - 1);
    expect(isDrained()).toBe(false);
    await world.clock.advance(1);
    expect(isDrained()).toBe(true);
    world.clusters.stop();
  });

  it("also if the cluster is divided no more; and the broken write of an own namespace delays nothing else", async () => {
    const world = setup();
    api.script = (req, res) => (req.method === "GET" ? answer(req, res) : res.destroy());
    enforce(world, OWN);
    await answerOf(world.send("PUT", `${CONFIG_MAPS}/c`, { body: "{}" }));
    enforce(world, table([subset("blue")], { own: [0], theirs: [0] }), {}, 2);
    expect(drained(world)()).toBe(true);
    enforce(world, undefined, { clusters: [] }, 3);
    const isDrained = drained(world);
    expect(isDrained()).toBe(false);
    await world.clock.advance(DRAIN_MS);
    expect(isDrained()).toBe(true);
  });
});

it("requests are counted for each cluster that is served", async () => {
  const world = setup();
  enforce(world, OWN);
  await answerOf(world.send("GET", `${CONFIG_MAPS}/c`));
  await answerOf(world.send("POST", THEIRS, { body: "{}" }));
  const counted = async () => (await world.registry.metrics()).match(/^ctrlmesh_proxy_cluster_requests_total.*/gm);
  expect(await counted()).toEqual([
    'ctrlmesh_proxy_cluster_requests_total{cluster="eu",code="200"} 1',
    'ctrlmesh_proxy_cluster_requests_total{cluster="eu",code="403"} 1',
  ]);
  enforce(world, undefined, { clusters: [] }, 2);
  expect(await counted()).toBeNull();
});

describe("a cluster that fails", () => {
  it("with a certificate of another CA gets no request, and is reported after 5 s", async () => {
    const world = setup();
    enforce(world, OWN);
    api.rotateCa();
    expect((await answerOf(world.send("GET", `${CONFIG_MAPS}/c`)))[0]).toBe(503);
    await world.clock.advance(5_000);
    expect((await answerOf(world.send("GET", `${CONFIG_MAPS}/c`)))[0]).toBe(503);
    expect(api.seen).toEqual([]);
    expect(reports).toEqual([{ unreachable: [{ cluster: "eu", reason: expect.stringContaining("connecting") }] }]);
    world.clusters.stop();
  });

  it("is served anew at once when its URL or CA changes, without its old connections", async () => {
    const world = setup();
    enforce(world, OWN);
    expect((await answerOf(world.send("GET", `${CONFIG_MAPS}/c`)))[0]).toBe(200);
    api.rotateCa();
    enforce(world, OWN, {}, 2);
    await eventually(() => api.open === 0);
    expect((await answerOf(world.send("GET", `${CONFIG_MAPS}/c`)))[0]).toBe(200);
    enforce(world, undefined, { clusters: [] }, 3);
    await eventually(() => api.open === 0);
  });
});

it("an endless object takes no more than the memory of all clusters, and then other reads are refused, but no writes", async () => {
  const world = setup();
  api.script = (req, res) => {
    if (req.method !== "GET" || req.url?.endsWith("/api/v1")) return answer(req, res);
    const chunk = Buffer.alloc(1024 * 1024, "x");
    const send = () => {
      while (!res.destroyed && res.write(chunk));
    };
    res
      .writeHead(200, { "content-type": "application/json" })
      .on("drain", send)
      .on("error", () => undefined);
    res.write('{"kind":"ConfigMapList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"');
    send();
  };
  enforce(world, OWN);
  const lists = Array.from({ length: 12 }, () => world.send("GET", "/_ctrlmesh/clusters/eu/api/v1/configmaps?watch=1").reply);
  const errors = await Promise.all(lists.map(async (list) => textOf(await list).catch((error: { code: string }) => error.code)));
  expect(errors).toContain("OVER_MEMORY_SHARE");
  const [code, text] = await answerOf(world.send("GET", `${CONFIG_MAPS}/c`));
  expect([code, text]).toEqual([503, expect.stringMatching(/cluster \\"eu\\" is not asked for objects: .* of the 64 MiB/)]);
  expect((await answerOf(world.send("POST", CONFIG_MAPS, { body: "{}" })))[0]).toBe(200);
  world.clusters.stop();
});
