// A proxy and a manager of different versions. Each reports a resource type that the other does not support, and never ignores it silently.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { silentLogger } from "../../../src/base/log.ts";
import { createRegistry } from "../../../src/base/metrics.ts";
import { createMeshServer } from "../../../src/manager/server/mesh-server.ts";
import { createProxyRegistry } from "../../../src/manager/server/proxy-registry.ts";
import { POLICY, policiesDigest } from "../../../src/mesh/contract/policy-type.ts";
import type { ResourceType, Versioned } from "../../../src/mesh/contract/resource-type.ts";
import { ROUTE } from "../../../src/mesh/contract/route-type.ts";
import { NO_POLICIES } from "../../../src/policy/policy.ts";
import { createSession } from "../../../src/proxy/session/create-session.ts";
import { createStateFolder } from "../../../src/proxy/state/state-folder.ts";
import { eventually } from "../../support/eventually.ts";
import { startManager } from "../../support/scripted-manager.ts";
import { openProxy, registrationOf } from "../../support/scripted-proxy.ts";
import { routes } from "../../support/test-routes.ts";
import { claimsOf, routeAck, wholeUpdate } from "../../support/updates.ts";

const REST = Array.from({ length: 50 }, (_, index) => `n${index}`);
/** A resource type that only this test's manager supports. */
const EGRESS: ResourceType<Versioned> = { name: "egress", encode: () => Buffer.from("?"), decode: (_, head) => head };

let dir = "";
let stops: (() => unknown)[] = [];

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "version-skew-"));
  stops = [];
});
afterEach(async () => {
  for (const stop of stops.reverse()) await stop();
  await rm(dir, { recursive: true, force: true });
});

async function startServer() {
  const registry = createProxyRegistry({ log: silentLogger() });
  const server = createMeshServer({
    listen: { host: "127.0.0.1", port: 0 },
    registry,
    judge: () => ({ kind: "serve" }),
    leadership: { epoch: 1 },
    clock: systemClock,
    log: silentLogger(),
  });
  await server.start(new AbortController().signal);
  stops.push(() => server.stop());
  return { registry, endpoint: `127.0.0.1:${server.port}` };
}

async function startProxy(endpoint: string) {
  const session = createSession({
    config: { manager: endpoint, podNamespace: "shop", podName: "shop-0", podUid: "uid-1" },
    state: createStateFolder(dir, silentLogger()),
    log: silentLogger(),
    clock: systemClock,
    random: () => 0.5,
    registry: createRegistry("proxy", "test"),
    proxyVersion: "9.9.9",
    backoff: { baseMs: 20, maxMs: 50 },
  });
  stops.push(() => session.stop());
  await session.start(new AbortController().signal);
  return session;
}

it("a proxy without deltas gets whole routes, and an unsupported resource type becomes a problem in the proxy's facts", async () => {
  const { registry, endpoint } = await startServer();
  const proxy = openProxy(endpoint);
  stops.push(() => proxy.close());
  proxy.send(registrationOf("old", { proxyVersion: "0.0.1" }));
  await eventually(() => registry.facts("shop/old")?.connected === true);
  registry.publish("shop/old", EGRESS, { version: 1, digest: "p" });
  for (const version of [1, 2]) {
    registry.publish("shop/old", ROUTE, routes(version, { blue: ["a", `b${version}`], defaultSubset: REST }));
    const updates = () => proxy.received.flatMap((message) => ("update" in message ? [message.update] : []));
    await eventually(() => updates().length === version);
    expect(updates().at(-1)).toMatchObject({ baseDigest: "", resource: { type: "routes", version } });
    proxy.send({ ack: routeAck(updates().at(-1)?.nonce ?? 0, version) });
    await eventually(() => registry.facts("shop/old")?.acknowledged?.version === version);
  }
  expect(registry.facts("shop/old")?.problems).toEqual({ egress: ['the proxy does not support resource type "egress"'] });
});

it("a proxy from before routes were JSON gets no update, may hold anything, and its facts have the problem", async () => {
  const { registry, endpoint } = await startServer();
  const proxy = openProxy(endpoint);
  stops.push(() => proxy.close());
  const acknowledged = { type: "route", version: 1, digest: "d", body: Buffer.from([0x0a, 0]) };
  proxy.send(registrationOf("other", { capabilities: ["type:route"], route: { ...claimsOf(), version: 1, acknowledged } }));
  await eventually(() => registry.facts("shop/other")?.connected === true);
  registry.publish("shop/other", ROUTE, routes(1, { blue: ["a"] }));
  expect(registry.facts("shop/other")).toMatchObject({
    outstanding: undefined,
    mayHoldMore: true,
    problems: { routes: ['the proxy does not support resource type "routes"'] },
  });
});

it("a proxy rejects an unknown resource type, and enforces the known types", async () => {
  const manager = await startManager();
  stops.push(() => manager.stop());
  const session = await startProxy(manager.endpoint);
  await eventually(() => manager.streams.length === 1);
  manager.send({ update: wholeUpdate(routes(1, { blue: ["a"] }), 4, { type: "egress" }) });
  manager.send({ update: wholeUpdate(routes(1, { blue: ["a"] }), 1) });
  await eventually(() => manager.received.some((message) => "ack" in message));
  expect(manager.received.flatMap((message) => ("nack" in message ? [message.nack] : []))).toEqual([
    {
      type: "egress",
      nonce: 4,
      version: 1,
      needsWhole: false,
      problems: ['resource type "egress" is not known to this proxy (version 9.9.9)'],
    },
  ]);
  expect(session.current?.snapshot.version).toBe(1);
});

it("today's proxy and today's manager agree on types and deltas, and on what a new proxy waits for", async () => {
  const { registry, endpoint } = await startServer();
  const session = await startProxy(endpoint);
  await eventually(() => registry.facts("shop/shop-0")?.connected === true);
  for (const version of [1, 2]) {
    registry.publish("shop/shop-0", ROUTE, routes(version, { blue: ["a", `b${version}`], defaultSubset: REST }));
    await eventually(() => registry.facts("shop/shop-0")?.acknowledged?.version === version);
  }
  expect(session.current).toBeUndefined();
  registry.publish("shop/shop-0", POLICY, { version: 1, digest: policiesDigest(NO_POLICIES), ...NO_POLICIES });
  await eventually(() => session.current !== undefined);
  session.report("leader", true);
  session.beginHold("new");
  await eventually(
    () => registry.facts("shop/shop-0")?.leader === true && registry.facts("shop/shop-0")?.backlog.heldNamespaces === 1,
  );
  expect(session.current?.view("", "pods").ownershipOf("b2")).toBe("own");
});
