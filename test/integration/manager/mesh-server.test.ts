// The mesh server over real sockets: what one proxy does, or does not do, must not touch the others.

import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { ServerHttp2Stream } from "node:http2";
import { connect } from "node:net";
import { connect as connectTls } from "node:tls";
import { status } from "@grpc/grpc-js";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { silentLogger } from "../../../src/base/log.ts";
import { createMeshServer, type MeshServer } from "../../../src/manager/server/mesh-server.ts";
import { createProxyRegistry, type ProxyRegistry } from "../../../src/manager/server/proxy-registry.ts";
import type { Leadership } from "../../../src/manager/server/proxy-stream.ts";
import type { ManagerMessage } from "../../../src/mesh/contract/messages.ts";
import { ROUTE } from "../../../src/mesh/contract/route-type.ts";
import { TABLE_DELTA } from "../../../src/mesh/contract/table-delta.ts";
import { tableHash, tableToBytes } from "../../../src/mesh/contract/table-json.ts";
import type { PodKey } from "../../../src/mesh/handover/proxy-facts.ts";
import { rulesOf } from "../../../src/mesh/handover/subset-rules.ts";
import type { ProxyVerdict } from "../../../src/mesh/link/manager-stream.ts";
import { greetingOf } from "../../../src/mesh/link/registration.ts";
import type { Snapshot } from "../../../src/mesh/ownership/snapshot.ts";
import { eventually } from "../../support/eventually.ts";
import { createFakeClock, type FakeClock } from "../../support/fake-clock.ts";
import { createFakeIdentity } from "../../support/fake-identity.ts";
import { byteFrames, callFrame, PREFACE } from "../../support/http2-frames.ts";
import { readBody, snapshot, subset, table } from "../../support/route-table.ts";
import { openProxy, openStuckProxy, registrationOf, type ScriptedProxy } from "../../support/scripted-proxy.ts";
import { CAPABILITIES, routeAck, snapshotIn } from "../../support/updates.ts";

const names = Array.from({ length: 20_000 }, (_, index) => `a-namespace-with-a-name-of-some-length-${index}`);
function wide(version: number, moved = 0): Snapshot {
  const members = Object.fromEntries(names.map((name, index) => [name, index < moved ? [] : [0]]));
  const made = snapshot(table([subset("canary")], members), { version });
  return { ...made, digest: rulesOf(made).digest };
}

let registry: ProxyRegistry;
let leadership: { epoch: number | undefined } & Leadership;
let verdict: ProxyVerdict;
let elsewhere: string | undefined;
let asked: Set<string | undefined>;
let clock: FakeClock | undefined;
let server: MeshServer;
let proxies: { close(): void }[];

async function start(fake?: FakeClock) {
  clock = fake;
  leadership = { epoch: 3 };
  verdict = { kind: "serve" };
  elsewhere = undefined;
  asked = new Set();
  registry = createProxyRegistry({ log: silentLogger() });
  server = createMeshServer({
    listen: { host: "127.0.0.1", port: 0 },
    registry,
    leaderElsewhere: () => elsewhere,
    judge(registration) {
      asked.add(registration?.pod?.name);
      return verdict;
    },
    leadership,
    clock: fake ?? systemClock,
    log: silentLogger(),
  });
  await server.start(new AbortController().signal);
}
const publish = (pod: PodKey, wanted: Snapshot) => registry.publish(pod, ROUTE, wanted);
const open = (isSilent = false) => {
  const proxy = openProxy(`127.0.0.1:${server.port}`, { isSilent });
  proxies.push(proxy);
  return proxy;
};
const openStuck = (name: string) =>
  proxies.push(openStuckProxy(`127.0.0.1:${server.port}`, registrationOf(name), { promise: { epoch: 3, tables: [] } }));
const updatesOf = ({ received }: ScriptedProxy) =>
  received.flatMap((message) => ("update" in message && message.update ? [message.update] : []));
const kinds = ({ received }: ScriptedProxy) => received.map(({ message }: ManagerMessage) => message);

beforeEach(() => {
  proxies = [];
});
afterEach(async () => {
  for (const proxy of proxies) proxy.close();
  await server.stop();
});

describe("a proxy", () => {
  beforeEach(() => start());
  it("is served once it has promised, sent whole routes, and acknowledges them", async () => {
    const proxy = open();
    proxy.send(registrationOf("p"));
    await eventually(() => proxy.served && registry.facts("shop/p")?.connected === true);
    publish("shop/p", wide(1));
    await eventually(() => updatesOf(proxy).length === 1);
    const [sent] = updatesOf(proxy);
    expect(sent).toMatchObject({ resource: { type: "routes", version: 1, digest: wide(1).digest }, baseDigest: "" });
    expect(sent && snapshotIn(sent).table.classOf.size).toBe(names.length);
    proxy.send({ ack: routeAck(sent?.nonce ?? 0, 1) });
    await eventually(() => registry.facts("shop/p")?.acknowledged?.version === 1);
  });
  it("is sent a delta if it takes them", async () => {
    const proxy = open();
    proxy.send(registrationOf("p", { capabilities: CAPABILITIES }));
    await eventually(() => registry.facts("shop/p")?.connected === true);
    publish("shop/p", wide(1));
    await eventually(() => updatesOf(proxy).length === 1);
    proxy.send({ ack: routeAck(updatesOf(proxy)[0]?.nonce ?? 0, 1) });
    publish("shop/p", wide(2, 1));
    await eventually(() => updatesOf(proxy).length === 2);
    const sent = updatesOf(proxy).at(-1);
    expect(sent?.baseDigest).toBe(wide(1).digest);
    expect(TABLE_DELTA.parse(readBody(sent?.resource?.body))).toMatchObject({ classes: [{ places: [names[0]] }] });
  });
});

describe("a long stream", () => {
  it("leaves nothing behind for each snapshot that was sent on it", async () => {
    await start();
    const warnings: string[] = [];
    const onWarning = ({ name }: Error) => warnings.push(name);
    process.on("warning", onWarning);
    const proxy = open();
    proxy.send(registrationOf("p"));
    await eventually(() => registry.facts("shop/p")?.connected === true);
    for (let version = 1; version <= 20; version++) {
      publish("shop/p", snapshot(table([], {}), { version, digest: `digest-${version}` }));
      await eventually(() => updatesOf(proxy).length === version);
      proxy.send({ ack: routeAck(version, version) });
      await eventually(() => registry.facts("shop/p")?.acknowledged?.version === version);
    }
    process.off("warning", onWarning);
    expect(warnings).toEqual([]);
  });
});

describe("epochs", () => {
  beforeEach(() => start());
  it("are promised before a registration counts; a report that came meanwhile is kept", async () => {
    const proxy = open(true);
    proxy.send(registrationOf("p"));
    proxy.send({ report: { leader: true } });
    await eventually(() => kinds(proxy).includes("welcome"));
    expect(proxy.received).toEqual([
      { message: "welcome", welcome: { epoch: 3, wantedTables: [], types: ["routes", "policy", "peers"] } },
    ]);
    expect(registry.facts("shop/p")).toBeUndefined();
    proxy.send({ promise: { epoch: 3, tables: [] } });
    await eventually(() => registry.facts("shop/p")?.connected === true);
    expect(registry.facts("shop/p")?.leader).toBe(true);
  });
  it("keep an older leader from a proxy that has promised to a newer one, and tell it so", async () => {
    const proxy = open();
    proxy.send(registrationOf("p", { epoch: 4 }));
    await eventually(() => proxy.ended !== undefined);
    expect(proxy.ended).toMatchObject({ code: status.UNAVAILABLE });
    expect(registry.facts("shop/p")).toBeUndefined();
  });
  it("end: a replica whose lease is over sends nothing more, on streams that it has and on new ones", async () => {
    const proxy = open();
    proxy.send(registrationOf("p"));
    await eventually(() => registry.facts("shop/p")?.connected === true);
    leadership.epoch = undefined; // what waking up after the lease has run out looks like
    publish("shop/p", wide(1));
    await eventually(() => proxy.ended !== undefined);
    expect([proxy.ended?.code, updatesOf(proxy)]).toEqual([status.UNAVAILABLE, []]);
    const other = open();
    other.send(registrationOf("q"));
    await eventually(() => other.ended !== undefined);
    expect([other.ended?.code, registry.facts("shop/q")]).toEqual([status.UNAVAILABLE, undefined]);
  });
  it("are those of the moment of the promise: what was welcomed by a leader of before is not served", async () => {
    for (const change of [() => (leadership.epoch = 5), () => (verdict = { kind: "refuse", message: "the pod is gone" })]) {
      await server.stop();
      await start();
      const proxy = open(true);
      proxy.send(registrationOf("p"));
      await eventually(() => kinds(proxy).includes("welcome"));
      change();
      proxy.send({ promise: { epoch: 3, tables: [] } });
      await eventually(() => proxy.ended !== undefined);
      expect(registry.facts("shop/p")).toBeUndefined();
    }
  });
});

describe("tables that registrations name by hash", () => {
  const held = wide(7);
  const greeting = (name: string, snapshots: readonly Snapshot[] = [held]) => {
    const [acknowledged, ...inDoubt] = snapshots;
    const pod = { namespace: "shop", name, uid: "uid-1" };
    const facts = { pod, proxyVersion: "test", capabilities: CAPABILITIES, streamNumber: 1, epoch: 2, version: 7 };
    return greetingOf({ ...facts, claims: { acknowledged, inDoubt, mayHoldMore: false } });
  };
  const greet = (name: string, snapshots?: readonly Snapshot[]) => {
    const { registration, tablesFor } = greeting(name, snapshots);
    const proxy = open(true);
    proxy.send({ registration });
    const welcome = () =>
      proxy.received.flatMap((message) => ("welcome" in message && message.welcome ? [message.welcome] : []))[0];
    return {
      proxy,
      facts: () => registry.facts(`shop/${name}`),
      wanted: () => welcome()?.wantedTables,
      promise: (told = tablesFor(welcome()?.wantedTables ?? [])) => proxy.send({ promise: { epoch: 3, tables: told } }),
    };
  };

  it("are asked of two proxies, and known for all", async () => {
    await start();
    const all = Array.from({ length: 20 }, (_, index) => greet(`p${index}`));
    await eventually(() => asked.size === 20 && all.some(({ wanted }) => wanted() !== undefined));
    const welcomed = all.filter(({ wanted }) => wanted() !== undefined);
    expect(welcomed[0]?.wanted()).toEqual([tableHash(held.table)]);
    welcomed[0]?.promise();
    await eventually(() => all.every(({ wanted }) => wanted() !== undefined));
    for (const row of all) if (row !== welcomed[0]) row.promise();
    await eventually(() => all.every(({ facts }) => facts()?.connected));
    expect(all.flatMap(({ wanted }) => wanted() ?? [])).toHaveLength(2);
    const known = all.map(({ facts }) => facts());
    expect(new Set(known.map((facts) => facts?.acknowledged?.table)).size).toBe(1);
    expect(known[5]).toMatchObject({ mayHoldMore: false, inDoubt: [], version: 7, acknowledged: { digest: held.digest } });
    expect(known[5]?.acknowledged?.table.classOf.size).toBe(names.length);
  });

  it("are asked for what is in doubt, too; what does not come is held to be anything, of that proxy alone", async () => {
    await start();
    const snapshots = [held, wide(8, 1), wide(9, 2)];
    const forgetful = greet("forgetful", snapshots);
    await eventually(() => forgetful.wanted()?.length === 3);
    const honest = greet("honest", snapshots);
    await eventually(() => asked.has("honest"));
    await eventually(() => honest.wanted()?.length === 3);
    forgetful.promise([tableToBytes(held.table), Buffer.from("no table")]);
    honest.promise();
    await eventually(() => honest.facts()?.connected === true && forgetful.facts()?.connected === true);
    expect(forgetful.facts()).toMatchObject({ mayHoldMore: true, acknowledged: { version: 7 }, inDoubt: [] });
    expect(honest.facts()).toMatchObject({ mayHoldMore: false, inDoubt: [{ version: 8 }, { version: 9 }] });
    expect(honest.facts()?.acknowledged?.table).toBe(forgetful.facts()?.acknowledged?.table);
  });

  it("are asked of all others when two proxies do not send them: these delay the others for half a second, and are ended", async () => {
    await start(createFakeClock());
    const silent = ["s1", "s2"].map((name) => greet(name));
    await eventually(() => silent.every(({ wanted }) => wanted()?.length === 1));
    const others = ["p", "q", "r"].map((name) => greet(name));
    await eventually(() => ["p", "q", "r"].every((name) => asked.has(name)));
    await clock?.advance(499);
    expect(others.map(({ wanted }) => wanted())).toEqual([undefined, undefined, undefined]);
    await clock?.advance(101); // when it looks again
    await eventually(() => others.every(({ wanted }) => wanted()?.length === 1));
    for (const each of others) each.promise();
    await eventually(() => others.every(({ facts }) => facts()?.connected === true));
    await clock?.advance(10_000);
    await eventually(() => silent.every(({ proxy }) => proxy.ended?.code === status.DEADLINE_EXCEEDED));
    expect(silent.map(({ facts }) => facts())).toEqual([undefined, undefined]);
  });

  it("are asked of whoever has waited for five seconds, whatever others do", async () => {
    await start(createFakeClock());
    const all = Array.from({ length: 3 }, (_, index) => greet(`p${index}`));
    await eventually(() => asked.size === 3);
    verdict = { kind: "wait", message: "not listed" }; // nobody is looked at until then
    await clock?.advance(4_900);
    expect(all.filter(({ wanted }) => wanted() !== undefined).length).toBeLessThan(3);
    verdict = { kind: "serve" };
    await clock?.advance(300);
    await eventually(() => all.every(({ wanted }) => wanted()?.length === 1));
  });
});

describe("who is turned away", () => {
  beforeEach(() => start());
  it("is told where to go, or why", async () => {
    for (const [answer, expected] of [
      [
        { kind: "redirect", endpoint: "10.0.0.1:1" },
        { code: 0, details: "" },
      ],
      [
        { kind: "redirect", endpoint: "" },
        { code: status.UNAVAILABLE, details: "no replica leads yet" },
      ],
      [
        { kind: "refuse", message: "no pod" },
        { code: status.PERMISSION_DENIED, details: "no pod" },
      ],
    ] as const) {
      verdict = answer;
      const proxy = open();
      proxy.send(registrationOf("p"));
      await eventually(() => proxy.ended !== undefined);
      expect(proxy.ended).toEqual(expected);
      const redirects = proxy.received.flatMap((message) => ("redirect" in message ? [message.redirect?.endpoint] : []));
      expect(redirects).toEqual(answer.kind === "redirect" && answer.endpoint !== "" ? ["10.0.0.1:1"] : []);
    }
    expect([...registry.pods]).toEqual([]);
  });
  it("is told so by a replica that does not lead before it has said anything", async () => {
    elsewhere = "10.0.0.1:1";
    const proxy = open();
    await eventually(() => proxy.ended !== undefined);
    expect([proxy.ended, kinds(proxy)]).toEqual([{ code: 0, details: "" }, ["redirect"]]);
  });
  it("waits a while where nobody leads yet, and is served, or sent on, as soon as somebody does", async () => {
    await server.stop();
    const fake = createFakeClock();
    await start(fake);
    const openParked = async (name: string) => {
      const proxy = open();
      proxy.send(registrationOf(name));
      const before = fake.pending;
      await eventually(() => fake.pending > before);
      return proxy;
    };
    elsewhere = "";
    const served = await openParked("served");
    await fake.advance(4_000);
    expect([served.ended, registry.facts("shop/served")]).toEqual([undefined, undefined]);
    elsewhere = undefined;
    await fake.advance(250);
    await eventually(() => registry.facts("shop/served")?.connected === true);
    elsewhere = "";
    const [sent, tired] = [await openParked("sent"), await openParked("tired")];
    elsewhere = "10.0.0.1:1";
    await fake.advance(250);
    await eventually(() => sent.ended !== undefined && tired.ended !== undefined);
    expect([kinds(sent), kinds(tired)]).toEqual([["redirect"], ["redirect"]]);
    elsewhere = "";
    const last = await openParked("last");
    await fake.advance(6_000);
    await eventually(() => last.ended !== undefined);
    expect(last.ended).toEqual({ code: status.UNAVAILABLE, details: "no replica leads yet" });
  });
  it("waits a while as long as it cannot be judged, and loses nothing that it reported meanwhile", async () => {
    verdict = { kind: "wait", message: "not listed" };
    const proxy = open();
    proxy.send(registrationOf("p"));
    proxy.send({ report: { leader: true } });
    await eventually(() => asked.size === 1);
    expect([proxy.ended, registry.facts("shop/p")]).toEqual([undefined, undefined]);
    verdict = { kind: "serve" };
    await eventually(() => registry.facts("shop/p")?.leader === true);
    verdict = { kind: "wait", message: "not listed" };
    const tired = open();
    tired.send(registrationOf("q"));
    await eventually(() => tired.ended !== undefined);
    expect(tired.ended).toEqual({ code: status.UNAVAILABLE, details: "not listed" });
  });
  it("is who floods: with registrations of one pod, or with messages; other pods are served meanwhile", async () => {
    const flood = Array.from({ length: 40 }, () => open());
    for (const proxy of flood) proxy.send(registrationOf("loud"));
    const quiet = open();
    quiet.send(registrationOf("quiet"));
    await eventually(() => registry.facts("shop/quiet")?.connected === true);
    await eventually(() => flood.filter(({ ended }) => ended?.code === status.RESOURCE_EXHAUSTED).length >= 25);
    for (let round = 0; round < 2_000; round++) quiet.send({ report: { leader: false } });
    await eventually(() => quiet.ended?.code === status.RESOURCE_EXHAUSTED);
    expect(registry.facts("shop/quiet")?.connected).toBe(false);
  });
});

describe("a proxy that says or reads nothing", () => {
  it("costs the others nothing, and its connection is cut", async () => {
    await start(createFakeClock());
    openStuck("stuck");
    const well = open();
    well.send(registrationOf("well"));
    await eventually(() => registry.facts("shop/stuck")?.connected === true && registry.facts("shop/well")?.connected === true);
    for (let version = 1; version <= 5; version++) {
      for (const pod of ["shop/stuck", "shop/well"] as const) publish(pod, wide(version, version));
      await eventually(() => updatesOf(well).length === version);
      well.send({ ack: routeAck(updatesOf(well).at(-1)?.nonce ?? 0, version) });
      await eventually(() => registry.facts("shop/well")?.acknowledged?.version === version);
    }
    expect(registry.facts("shop/stuck")).toMatchObject({ acknowledged: undefined, outstanding: { version: 1 } });
    await clock?.advance(31_000);
    await eventually(() => registry.facts("shop/stuck")?.connected === false);
    expect(registry.facts("shop/well")?.connected).toBe(true);
    expect(registry.facts("shop/stuck")).toMatchObject({ outstanding: { version: 1 } }); // a lost connection is no lost claim
  });
  it("is ended when no registration comes, or no promise", async () => {
    await start(createFakeClock());
    const silent = open();
    const unpromised = open(true);
    unpromised.send(registrationOf("p"));
    await eventually(() => kinds(unpromised).includes("welcome"));
    await clock?.advance(11_000);
    await eventually(() => silent.ended !== undefined && unpromised.ended !== undefined);
    expect(unpromised.ended?.code).toBe(status.DEADLINE_EXCEEDED);
    expect([...registry.pods]).toEqual([]);
  });
});

describe("the end", () => {
  it("comes within a second or so, also with a proxy that reads nothing and a connection that says nothing", async () => {
    await start();
    openStuck("stuck");
    await eventually(() => registry.facts("shop/stuck")?.connected === true);
    publish("shop/stuck", wide(1));
    const idle = connect(server.port, "127.0.0.1").resume();
    idle.on("error", () => undefined);
    await eventually(() => idle.readyState === "open");
    const beganMs = performance.now();
    await server.stop();
    expect(performance.now() - beganMs).toBeLessThan(5_000);
    await eventually(() => idle.destroyed || idle.readyState !== "open");
  });
});

it("of 400 single bytes in a call that waits for its verdict, one buffer is kept, and of thousands the connection is cut", async () => {
  const streams: ServerHttp2Stream[] = [];
  const onStream = (message: unknown) => streams.push((message as { stream: ServerHttp2Stream }).stream);
  subscribe("http2.server.stream.created", onStream);
  server = createMeshServer({
    listen: { host: "127.0.0.1", port: 0 },
    registry: createProxyRegistry({ log: silentLogger() }),
    security: {
      identity: createFakeIdentity(),
      rejections: { reject: () => undefined },
      identify: () => new Promise(() => undefined),
    } as never,
    judge: () => ({ kind: "serve" }),
    leadership: { epoch: 3 },
    clock: systemClock,
    log: silentLogger(),
  });
  await server.start(new AbortController().signal);
  const socket = connectTls({ port: server.port, host: "127.0.0.1", rejectUnauthorized: false, ALPNProtocols: ["h2"] });
  socket.on("error", () => undefined).resume();
  socket.write(Buffer.concat([PREFACE, callFrame(1, "/ctrlmesh.v1.Mesh/Connect"), byteFrames(1, Buffer.alloc(400, 1))]));
  await eventually(() => streams.length === 1 && socket.writableLength === 0);
  await new Promise((resolve) => setTimeout(resolve, 500));
  const [stream] = streams as [ServerHttp2Stream];
  expect(stream.readableLength).toBe(1);
  const chunks: number[] = [];
  stream.on("data", (chunk: Buffer) => chunks.push(chunk.length)).resume();
  await eventually(() => chunks.reduce((sum, length) => sum + length, 0) === 400);
  expect(chunks.length).toBeLessThanOrEqual(3);
  const closed = new Promise((resolve) => socket.once("close", resolve));
  socket.write(byteFrames(1, Buffer.alloc(2_000, 1)));
  await closed;
  unsubscribe("http2.server.stream.created", onStream);
  socket.destroy();
});
