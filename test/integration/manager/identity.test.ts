// Who the manager and its proxies are, over real sockets and against localkube's TokenReview: impostors get nothing, and neither a new
// leaf nor a new CA is noticed by anybody who is served.
import { generateKeyPairSync } from "node:crypto";
import { connect as connectHttp2 } from "node:http2";
import { connect as connectTcp } from "node:net";
import { connect as connectTls } from "node:tls";
import { credentials, status } from "@grpc/grpc-js";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { INJECTED_LABEL } from "../../../src/api/injected-pod.ts";
import type { VirtualApp } from "../../../src/api/virtual-app.ts";
import { systemClock, systemRandom } from "../../../src/base/clock.ts";
import { createRegistry, type Registry } from "../../../src/base/metrics.ts";
import { splitPem } from "../../../src/base/pem.ts";
import { createKubeClient } from "../../../src/kube/client/client.ts";
import { NAMESPACES, PODS, type Pod, SECRETS } from "../../../src/kube/client/resources.ts";
import type { KubeClient } from "../../../src/kube/client/types.ts";
import { addIdentity } from "../../../src/manager/identity/add.ts";
import { ROTATE_ANNOTATION } from "../../../src/manager/identity/managed-ca.ts";
import { createProxyJudge } from "../../../src/manager/server/judge-proxy.ts";
import { createMeshServer, type MeshServer } from "../../../src/manager/server/mesh-server.ts";
import { createProxyRegistry, type ProxyRegistry } from "../../../src/manager/server/proxy-registry.ts";
import { ROUTE } from "../../../src/mesh/contract/route-type.ts";
import { createInformers, type Informers } from "../../../src/runtime/informers.ts";
import { createStore, type WritableStore } from "../../../src/runtime/store.ts";
import { createLocalKube, type LocalKube } from "../../localkube/localkube.ts";
import { eventually } from "../../support/eventually.ts";
import { createFakeClock, type FakeClock } from "../../support/fake-clock.ts";
import { type HostileOptions, openHostileConnections } from "../../support/hostile-connections.ts";
import { SERVICE_ACCOUNTS } from "../../support/mesh/cluster.ts";
import { snapshot, table } from "../../support/route-table.ts";
import { type Access, certify, openProxy, registrationOf, type ScriptedProxy } from "../../support/scripted-proxy.ts";
import { handshake } from "../../support/tls-handshake.ts";

const SERVER_NAME = "ctrlmesh-manager.ctrlmesh-system.svc";
const APP: VirtualApp = {
  apiVersion: "ctrlmesh.kruise.io/v1alpha1",
  kind: "VirtualApp",
  metadata: { namespace: "shop", name: "app" },
  spec: { selector: { matchLabels: { app: "op" } }, configuration: { controller: { leaderElectionName: "lock" } } },
};
/** Instead of 256. */
const MAX_UNPROVED = 64;
const { signal } = new AbortController();
let kube: LocalKube;
let client: KubeClient;
let informers: Informers;
let kubeAheadMs: number;
let clock: FakeClock;
let metricsRegistry: Registry;
let lines: string[];
let mesh: ReturnType<typeof addIdentity>;
let registry: ProxyRegistry;
let pods: WritableStore<Pod>;
let server: MeshServer;
let proxies: ScriptedProxy[];
let elsewhere: string | undefined;

beforeEach(async () => {
  kubeAheadMs = 0;
  kube = createLocalKube({ clock: { ...systemClock, now: () => systemClock.now() + kubeAheadMs } });
  await kube.start(signal);
  client = createKubeClient({ server: kube.url, caPem: kube.caPem, token: () => kube.token, userAgent: "test" });
  for (const name of ["shop", "ctrlmesh-system"]) await client.create(NAMESPACES, { metadata: { name } });
  await client.create(SERVICE_ACCOUNTS, { metadata: { namespace: "shop", name: "operator" } });
  // Certificates are verified by the machine's clock.
  clock = createFakeClock(systemClock.now());
  metricsRegistry = createRegistry("manager", "test");
  lines = [];
  const log = pino({ level: "debug" }, { write: (line: string) => void lines.push(line) });
  const fail = (error: unknown) => {
    throw error;
  };
  pods = createStore<Pod>(fail);
  pods.replace([]);
  const apps = createStore<VirtualApp>(fail);
  apps.replace([APP]);
  const lists = { list: (namespace: string) => pods.list(namespace), get: pods.get };
  informers = createInformers({ client, clock: systemClock, random: systemRandom, log });
  await informers.start(signal);
  mesh = addIdentity({
    client,
    informers,
    namespace: "ctrlmesh-system",
    serviceName: "ctrlmesh-manager",
    clusterDomain: "cluster.local",
    leaseName: "ctrlmesh-manager",
    serverNames: [],
    caSecret: "",
    caSettleMs: 1_000,
    certificateLifetimeMs: 86_400_000,
    ...{
      apiServerTokenCacheMs: 10_000,
      apps: { hasSynced: true, list: apps.list as never },
      pods: [lists],
      isLeader: () => true,
      clock,
      random: () => 1,
      log,
      metricsRegistry,
    },
  });
  for (const runnable of mesh.runnables) await runnable.start(signal);
  registry = createProxyRegistry({ log });
  const { security } = mesh;
  elsewhere = undefined;
  const leaderElsewhere = () => elsewhere;
  server = createMeshServer({
    listen: { host: "127.0.0.1", port: 0 },
    security,
    registry,
    leaderElsewhere,
    clock,
    log,
    maxUnproved: MAX_UNPROVED,
    judge: createProxyJudge({ pods: lists, apps, leaderElsewhere, rejections: security.rejections }),
    leadership: { epoch: 1 },
  });
  await server.start(signal);
  proxies = [];
});
afterEach(async () => {
  for (const proxy of proxies) proxy.close();
  await server.stop();
  for (const runnable of mesh.runnables) await runnable.stop();
  await informers.stop();
  await client.close();
  await kube.stop();
});

async function addPod(name: string, sidecar = "ctrlmesh-proxy") {
  const labels = { [INJECTED_LABEL]: "app" };
  const containers = [sidecar, "operator"].map((container) => ({ name: container, image: "x" }));
  const spec = { serviceAccountName: "operator", containers };
  const pod = await client.create(PODS, { metadata: { namespace: "shop", name, labels }, spec });
  pods.upsert(pod);
  return { name, uid: pod.metadata.uid ?? "", token: await tokenOf(name, pod.metadata.uid ?? "") };
}
async function tokenOf(pod: string | undefined, uid = "", audience = "ctrlmesh"): Promise<string> {
  const boundObjectRef = pod === undefined ? undefined : { apiVersion: "v1", kind: "Pod", name: pod, uid };
  const body = { spec: { audiences: [audience], expirationSeconds: 600, boundObjectRef } };
  const answer = await client.createSubresource(SERVICE_ACCOUNTS, { namespace: "shop", name: "operator" }, "token", body);
  return (answer as { status: { token: string } }).status.token;
}
const endpoint = () => `127.0.0.1:${server.port}`;
const access = (token: string | undefined, trustPem = mesh.identity.trustPem): Access => ({
  credentials: credentials.createSsl(Buffer.from(trustPem)),
  serverName: SERVER_NAME,
  ...(token === undefined ? {} : { token }),
});
function open(given: Access, registration: { name: string; uid: string } | undefined): ScriptedProxy {
  const proxy = openProxy(endpoint(), given);
  proxies.push(proxy);
  const { name = "", uid = "" } = registration ?? {};
  if (registration !== undefined) proxy.send(registrationOf(name, { pod: { namespace: "shop", name, uid } }));
  return proxy;
}
const ended = (proxy: ScriptedProxy) => eventually(() => proxy.ended ?? false);
const isReview = ({ resource }: { resource: string }) => resource === "tokenreviews";
const newKey = () => generateKeyPairSync("ec", { namedCurve: "P-256" });
const rejected = async (reason: string) =>
  Number(new RegExp(`rejected_identities_total\\{reason="${reason}"\\} (\\d+)`).exec(await metricsRegistry.metrics())?.[1]);
const rotateCa = async () => {
  const body = { metadata: { annotations: { [ROTATE_ANNOTATION]: "now" } } };
  await client.patch(SECRETS, { namespace: "ctrlmesh-system", name: "ctrlmesh-ca" }, { type: "merge", body });
};

describe("a proxy with the token of its pod", () => {
  it("is served over TLS, and gets a certificate that whoever trusts the mesh verifies", async () => {
    const pod = await addPod("p");
    const { privateKey, publicKey } = newKey();
    const reply = await certify(endpoint(), publicKey.export({ type: "spki", format: "der" }), access(pod.token));
    const served = { certPem: reply.chainPem, keyPem: privateKey.export({ type: "pkcs8", format: "pem" }).toString() };
    for (const name of ["localhost", "kubernetes.default.svc"]) expect(await handshake(served, reply.trustPem, name)).toBe("ok");
    expect(await handshake(served, reply.trustPem, SERVER_NAME)).toBe("ERR_TLS_CERT_ALTNAME_INVALID");
    open(access(pod.token), pod);
    await eventually(() => registry.facts("shop/p")?.connected === true);
    expect(kube.audit().filter(isReview)).toHaveLength(1);
  });
  it("is not turned away by an API server that is away: it comes back", async () => {
    const pod = await addPod("p");
    const trust = mesh.identity.trustPem;
    await kube.stop();
    expect(await ended(open(access(pod.token, trust), pod))).toMatchObject({ code: status.UNAVAILABLE });
    const key = newKey().publicKey.export({ type: "spki", format: "der" });
    await expect(certify(endpoint(), key, access(pod.token, trust))).rejects.toMatchObject({ code: status.UNAVAILABLE });
  });
  it("does not take a server for the manager that shows a proxy's certificate", async () => {
    const pod = await addPod("p");
    const wrong = { ...access(pod.token), serverName: "kubernetes.default.svc" };
    expect(await ended(open(wrong, pod))).toMatchObject({
      code: status.UNAVAILABLE,
      details: expect.stringContaining("altnames"),
    });
  });
  it("gets its certificate among eighty that come at once", async () => {
    const all = await Promise.all(Array.from({ length: 80 }, (_, index) => addPod(`p-${index}`)));
    const key = newKey().publicKey.export({ type: "spki", format: "der" });
    const replies = await Promise.all(all.map(({ token }) => certify(endpoint(), key, access(token))));
    expect(new Set(replies.map(({ chainPem }) => chainPem)).size).toBe(80);
  });
});

describe("impostors are refused, counted and logged without their token:", () => {
  const refuse = async (given: Access, registration: { name: string; uid: string }, code: number, reason: string) => {
    const before = await rejected(reason);
    const end = await ended(open(given, registration));
    expect(end.code).toBe(code);
    expect(await rejected(reason)).toBe(before + 1);
    expect(registry.facts(`shop/${registration.name}`)).toBeUndefined();
    const text = lines.join("");
    expect(text).toContain(`"reason":"${reason}"`);
    if (given.token !== undefined) expect(text).not.toContain(given.token.split(".")[1]);
    return end.details;
  };
  it("another pod's token", async () => {
    const [pod, other] = [await addPod("p"), await addPod("other")];
    const said = await refuse(access(other.token), pod, status.PERMISSION_DENIED, "other-pod");
    expect(said).toContain("the token is that of pod shop/other");
  });
  it("the right token, and another pod's name", async () => {
    const [pod, other] = [await addPod("p"), await addPod("other")];
    await refuse(access(pod.token), { ...pod, name: other.name }, status.PERMISSION_DENIED, "other-pod");
    await refuse(access(pod.token), { ...pod, uid: other.uid }, status.PERMISSION_DENIED, "other-pod");
  });
  it("a pod that registers for another one over and over, which is served all the same", async () => {
    const [pod, other] = [await addPod("p"), await addPod("other")];
    for (let times = 0; times < 12; times++) await ended(open(access(other.token), pod));
    open(access(pod.token), pod);
    await eventually(() => registry.facts("shop/p")?.connected === true);
  });
  it("an expired token", async () => {
    const pod = await addPod("p");
    kubeAheadMs = 700_000;
    await refuse(access(pod.token), pod, status.UNAUTHENTICATED, "bad-token");
  });
  it("the token of a pod that is gone", async () => {
    const pod = await addPod("p");
    await client.delete(PODS, { namespace: "shop", name: "p" }, { gracePeriodSeconds: 0 });
    await refuse(access(pod.token), pod, status.UNAUTHENTICATED, "bad-token");
  });
  it("a token that was made for the API server, and one that is bound to no pod", async () => {
    const pod = await addPod("p");
    const api = await tokenOf("p", pod.uid, "https://kubernetes.default.svc");
    await refuse(access(api), pod, status.UNAUTHENTICATED, "bad-token");
    await refuse(access(await tokenOf(undefined)), pod, status.UNAUTHENTICATED, "not-bound");
  });
  it("no token", async () => {
    await refuse(access(undefined), await addPod("p"), status.UNAUTHENTICATED, "no-token");
  });
  it("a pod without proxy, also when it asks for a certificate", async () => {
    const plain = await addPod("plain", "other");
    await refuse(access(plain.token), plain, status.PERMISSION_DENIED, "no-proxy");
    const key = newKey().publicKey.export({ type: "spki", format: "der" });
    await expect(certify(endpoint(), key, access(plain.token))).rejects.toMatchObject({ code: status.PERMISSION_DENIED });
    await expect(certify(endpoint(), key, access(undefined))).rejects.toMatchObject({ code: status.UNAUTHENTICATED });
    const pod = await addPod("p");
    await expect(certify(endpoint(), Buffer.alloc(91), access(pod.token))).rejects.toMatchObject({
      code: status.INVALID_ARGUMENT,
    });
  });
  it("a pod that is not one of the mesh's, before anything that it sends is read", async () => {
    const [unknown, plain] = [await addPod("unknown"), await addPod("plain", "other")];
    pods.replace(pods.list("shop").filter(({ metadata }) => metadata.name !== "unknown"));
    for (const { token } of [unknown, plain]) {
      expect(await ended(open(access(token), undefined))).toMatchObject({ code: status.PERMISSION_DENIED });
    }
    expect(await rejected("no-proxy")).toBe(1);
  });
  it("plain gRPC", async () => {
    const pod = await addPod("p");
    const before = await rejected("handshake");
    expect(await ended(open({ token: pod.token }, pod))).toMatchObject({ code: status.UNAVAILABLE });
    expect(await rejected("handshake")).toBeGreaterThan(before);
    expect(lines.join("")).toContain("not TLS");
    expect(lines.join("")).not.toContain(pod.token.split(".")[1]);
  });
});

describe("who is no proxy at all", () => {
  it("and scans ports, hangs up, or speaks HTTP/1.1, is counted, and costs a line a minute", async () => {
    for (let times = 0; times < 100; times++) {
      const socket = connectTcp(server.port, "127.0.0.1", () => (times % 2 === 0 ? socket.destroy() : socket.resetAndDestroy()));
    }
    await eventually(async () => (await rejected("handshake")) === 100);
    const web = connectTls({ port: server.port, host: "127.0.0.1", ALPNProtocols: ["http/1.1"], ca: mesh.identity.trustPem });
    const failed = Promise.withResolvers<void>();
    web.once("error", () => failed.resolve());
    await failed.promise;
    await eventually(async () => (await rejected("handshake")) === 101);
    // Those that were gone before they were looked at have no address.
    expect(lines.filter((line) => line.includes("turned away")).length).toBeLessThanOrEqual(2);
  });
  it("and holds connections open is cut off after ten seconds; who proved who it is stays", async () => {
    const pod = await addPod("p");
    open(access(pod.token), pod);
    await eventually(() => registry.facts("shop/p")?.connected === true);
    const options = { port: server.port, host: "127.0.0.1", servername: SERVER_NAME, ALPNProtocols: ["h2"] };
    const idle = connectTls({ ...options, ca: mesh.identity.trustPem });
    const closed = Promise.withResolvers<void>();
    idle
      .resume()
      .once("close", () => closed.resolve())
      .on("error", () => undefined);
    await new Promise<void>((resolve) => idle.once("secureConnect", () => resolve()));
    // The server may see the end of the handshake later than the client, and counts from then on.
    await eventually(async () => {
      await clock.advance(10_100);
      return idle.destroyed;
    });
    await closed.promise;
    expect(registry.facts("shop/p")?.connected).toBe(true);
    expect(await rejected("handshake")).toBe(1);
  });
  it.each<[string, Partial<HostileOptions>]>([
    ["finished handshakes", { protocols: ["h2"] }],
    ["connections without a byte", {}],
  ])("and holds all places with %s from two addresses keeps none of forty proxies out", async (_, attack) => {
    const hostile = ["127.0.0.2", "127.0.0.3"].map((from) =>
      openHostileConnections({ port: server.port, from, count: MAX_UNPROVED, ...attack }),
    );
    const all = await Promise.all(Array.from({ length: 40 }, (_, index) => addPod(`p-${index}`)));
    await eventually(() => hostile.every(({ tried }) => tried > MAX_UNPROVED));
    const key = newKey().publicKey.export({ type: "spki", format: "der" });
    const chains: string[] = [];
    for (const { token } of all) chains.push((await certify(endpoint(), key, access(token))).chainPem);
    expect(new Set(chains).size).toBe(40);
    for (const each of hostile) each.stop();
  });
  it("and shows a bad token loses its connection a moment after the answer", async () => {
    const { token } = await addPod("p");
    const { port } = server;
    const ca = mesh.identity.trustPem;
    const session = connectHttp2(`https://127.0.0.1:${port}`, { ca, servername: SERVER_NAME });
    const closed = Promise.withResolvers<void>();
    session.once("close", () => closed.resolve()).on("error", () => undefined);
    const answered = Promise.withResolvers<unknown>();
    const headers = {
      ":method": "POST",
      ":path": "/ctrlmesh.v1.Mesh/Connect",
      "content-type": "application/grpc",
      te: "trailers",
    };
    session
      .request({ ...headers, authorization: `Bearer ${token}x` })
      .once("response", (said) => answered.resolve(said["grpc-status"]));
    expect(await answered.promise).toBe(String(status.UNAUTHENTICATED));
    expect(session.closed).toBe(false);
    await clock.advance(1_100);
    await closed.promise;
    expect(await rejected("handshake")).toBe(0);
  });
});

describe("a pod with a good token", () => {
  it("that opens connections over and over keeps a few of them, and another pod's is left alone", async () => {
    const [pod, other] = [await addPod("p"), await addPod("other")];
    open(access(other.token), other);
    await eventually(() => registry.facts("shop/other")?.connected === true);
    const all: ScriptedProxy[] = [];
    for (let index = 0; index < 12; index++) {
      all.push(open(access(pod.token), undefined)); // says nothing: no registration counts it
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    await eventually(() => all.filter(({ ended: end }) => end !== undefined).length === 4);
    expect(registry.facts("shop/other")?.connected).toBe(true);
  });
});

describe("while nobody leads", () => {
  it("a proxy that waits proves who it is, and is served as soon as this replica leads; an impostor is not", async () => {
    elsewhere = "";
    const [pod, other] = [await addPod("p"), await addPod("other")];
    const waiting = clock.pending;
    open(access(pod.token), pod);
    const impostor = open(access(other.token), pod);
    await eventually(() => clock.pending >= waiting + 2 && kube.audit().filter(isReview).length === 2);
    elsewhere = undefined;
    await clock.advance(250);
    await eventually(() => registry.facts("shop/p")?.connected === true);
    expect(await ended(impostor)).toMatchObject({ code: status.PERMISSION_DENIED });
    expect(kube.audit().filter(isReview)).toHaveLength(2);
  });
});

describe("a new certificate authority", () => {
  it("comes, signs and replaces the old one while streams go on, and nobody who connects meanwhile fails", async () => {
    const pod = await addPod("p");
    const oldTrust = mesh.identity.trustPem;
    const stream = open(access(pod.token), pod);
    await eventually(() => registry.facts("shop/p")?.connected === true);
    const key = newKey();
    const keyPem = key.privateKey.export({ type: "pkcs8", format: "pem" }).toString();
    const spki = key.publicKey.export({ type: "spki", format: "der" });
    let isOver = false;
    let answered = 0;
    const certificatesOf = (pem = "") => splitPem(pem).length;
    const steps = new Set<string>();
    const look = () =>
      steps.add(`${certificatesOf(mesh.identity.trustPem)} trusted, ${certificatesOf(mesh.identity.serving?.certPem)} served`);
    look();
    // A step may last for a moment only, in which nobody asks.
    const endLooking = mesh.identity.onChange(look);
    const asking = [oldTrust, undefined].map(async (trustPem, index) => {
      const { token } = await addPod(`asker-${index}`);
      while (!isOver) {
        const { chainPem, trustPem: trusted } = await certify(endpoint(), spki, access(token, trustPem));
        const served = { certPem: chainPem, keyPem };
        // An operator that was started long ago, and one that is started now.
        for (const loaded of [oldTrust, trusted]) expect(await handshake(served, loaded, "localhost")).toBe("ok");
        answered++;
        await clock.advance(500); // what it may ask for in a second is bounded; a new CA settles in two such steps
      }
    });
    const answers = async (more: number) => {
      const until = answered + more;
      await eventually(() => answered >= until);
    };
    await answers(4);
    await rotateCa();
    await eventually(() => certificatesOf(mesh.identity.serving?.certPem) === 2); // the askers move the time
    expect(splitPem(mesh.identity.trustPem)[1]).toBe(oldTrust);
    await answers(4);
    isOver = true;
    await Promise.all(asking);
    endLooking();
    expect([...steps]).toEqual(["1 trusted, 1 served", "2 trusted, 1 served", "2 trusted, 2 served"]);
    registry.publish("shop/p", ROUTE, snapshot(table([], {}), { version: 1, digest: "d" }));
    await eventually(() => stream.received.some((message) => "update" in message));
    expect(stream.ended).toBeUndefined();
    const text = await metricsRegistry.metrics();
    expect(text).toMatch(/ctrlmesh_certificate_expiry_timestamp_seconds\{name="serving"\} \d+/);
  });
  it("is what new connections are shown at once", async () => {
    const { token } = await addPod("p");
    await rotateCa();
    await eventually(() => splitPem(mesh.identity.trustPem).length === 2);
    await clock.advance(2_000);
    await eventually(() => splitPem(mesh.identity.serving?.certPem ?? "").length === 2);
    const [newest = ""] = splitPem(mesh.identity.trustPem);
    const key = newKey().publicKey.export({ type: "spki", format: "der" });
    expect((await certify(endpoint(), key, access(token, newest))).trustPem).toBe(mesh.identity.trustPem);
  });
});
