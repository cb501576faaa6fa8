// The real stack of layers over real sockets: a pod of one subset sends requests to a scripted API server.
import type { IncomingMessage, ServerResponse } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { silentLogger } from "../../../src/base/log.ts";
import { election } from "../../../src/proxy/outbound/election/election.ts";
import { createLockGate, lockGate } from "../../../src/proxy/outbound/election/lock-gate.ts";
import { isolate } from "../../../src/proxy/outbound/isolate/isolate.ts";
import { createEnforcer } from "../../../src/proxy/session/enforcer.ts";
import { NO_MEMORY } from "../../../src/proxy/session/memory.ts";
import { eventually } from "../../support/eventually.ts";
import { answerJson, type Script, startFakeApi } from "../../support/fake-api.ts";
import { isolateDeps } from "../../support/isolate.ts";
import { startProxy } from "../../support/proxy-harness.ts";
import { reportTo } from "../../support/report-to.ts";
import { routes } from "../../support/test-routes.ts";

let stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.reverse()) await stop();
  stops = [];
});

async function setup(script: Script) {
  const session = createEnforcer();
  session.enforce(routes(1, { blue: ["a"], defaultSubset: ["b"] }));
  const leader: boolean[] = [];
  const sessionOfLayers = {
    get current() {
      return session.current;
    },
    onChange: session.onChange,
    beginWrite: session.beginWrite,
    beginHold: session.beginHold,
    beginRenewal: session.beginRenewal,
  };
  const report = reportTo({ leader: (value) => void leader.push(value) });
  const api = await startFakeApi(script);
  stops.push(() => api.close());
  const gate = createLockGate(systemClock, NO_MEMORY.lock);
  const proxy = await startProxy({
    api,
    election: election({ session: sessionOfLayers, report, gate, clock: systemClock, log: silentLogger() }),
    lockGate: lockGate(gate),
    isolate: isolate(isolateDeps({ session, clock: systemClock })),
  });
  stops.push(() => proxy.stop());
  return { session, api, proxy, leader };
}

const pod = (namespace: string, name: string) => ({ metadata: { namespace, name } });
const frame = (namespace: string, name: string) => `${JSON.stringify({ type: "ADDED", object: pod(namespace, name) })}\n`;

describe("a pod of one subset", () => {
  it("gets only its own objects of a large list", async () => {
    const items = Array.from({ length: 5_000 }, (_, index) => pod(index % 10 === 0 ? "a" : "b", `p${index}`));
    const { proxy } = await setup((_req, res) =>
      answerJson(res, 200, { kind: "PodList", apiVersion: "v1", metadata: {}, items }),
    );
    const { body } = await proxy.fetch("/api/v1/pods");
    expect(JSON.parse(body.toString()).items).toEqual(items.filter(({ metadata }) => metadata.namespace === "a"));
  });

  it("uses its connection further after a body that is too large", async () => {
    const { proxy } = await setup((_req, res) => answerJson(res, 200, {}));
    for (const mebibytes of [4, 6]) {
      const body = Buffer.alloc(mebibytes * 1024 * 1024, " ");
      const events = "/api/v1/namespaces/shop/events";
      const headers = { "content-type": "application/json" };
      expect((await proxy.fetch(events, { method: "POST", headers, body })).status).toBe(413);
      expect((await proxy.fetch("/version")).status).toBe(200);
    }
  });

  it("never gets a shortened list when the API server breaks off", async () => {
    const { proxy } = await setup((_req, res) => {
      res.writeHead(200, { "content-type": "application/json" });
      res.write('{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[');
      setImmediate(() => res.destroy());
    });
    await expect(proxy.fetch("/api/v1/pods")).rejects.toThrow();
  });

  it("gets its own events at once, and lists again after its subset gains a namespace", async () => {
    let events: ServerResponse | undefined;
    const { proxy, session, api } = await setup((req: IncomingMessage, res) => {
      res.writeHead(200, { "content-type": "application/json" });
      if (!req.url?.includes("watch")) return void res.end('{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]}');
      res.flushHeaders();
      events = res;
    });
    expect((await proxy.fetch("/api/v1/pods")).status).toBe(200);
    const response = await proxy.open("/api/v1/pods?watch=true&resourceVersion=5");
    let text = "";
    let ended = false;
    response.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
    response.on("end", () => {
      ended = true;
    });
    events?.write(frame("b", "secret") + frame("a", "own"));
    await eventually(() => text === frame("a", "own"));
    session.enforce(routes(2, { blue: ["a", "b"] }));
    await eventually(() => ended);
    expect(text).toContain('"code":410');
    expect(text).not.toContain("secret");
    await eventually(() => events?.destroyed === true);
    const again = await proxy.fetch("/api/v1/pods?watch=true&resourceVersion=5");
    expect([again.status, JSON.parse(again.body.toString())]).toMatchObject([200, { type: "ERROR", object: { code: 410 } }]);
    // The third one asks for the version that these lists and events do not have.
    expect(api.seen.map(({ url }) => url).at(2)).toBe("/api/v1/pods?limit=1");
    expect(api.seen).toHaveLength(3);
  });

  it("renews its lock under the subset's name, and its answer has the lock's own name", async () => {
    const { proxy, api, leader } = await setup((req, res) => {
      const chunks: Buffer[] = [];
      req.on("data", (chunk: Buffer) => chunks.push(chunk));
      req.on("end", () => answerJson(res, 200, JSON.parse(Buffer.concat(chunks).toString())));
    });
    const path = "/apis/coordination.k8s.io/v1/namespaces/shop/leases/shop-lock";
    const lease = { metadata: { name: "shop-lock", namespace: "shop" }, spec: { holderIdentity: "pod-1" } };
    const answer = await proxy.fetch(path, {
      method: "PUT",
      headers: { "content-type": "application/json" },
      body: Buffer.from(JSON.stringify(lease)),
    });
    expect(JSON.parse(answer.body.toString())).toEqual(lease);
    expect(api.seen[0]?.url).toBe(`${path}---blue`);
    expect(leader).toEqual([true]);
  });

  it("gets 403 for a write in a namespace of another subset, and the write never reaches the API server", async () => {
    const { proxy, api } = await setup((_req, res) => answerJson(res, 200, {}));
    const answer = await proxy.fetch("/api/v1/namespaces/b/pods/x", { method: "PUT", body: Buffer.from("{}") });
    expect(answer.status).toBe(403);
    expect(JSON.parse(answer.body.toString()).message).toMatch(/^ctrlmesh: /);
    expect(api.seen).toEqual([]);
  });

  it("has such a write passed with a warning and counted where the guard only warns", async () => {
    const { proxy, session, api } = await setup((_req, res) => answerJson(res, 200, {}));
    session.enforce(routes(2, { blue: ["a"], defaultSubset: ["b"] }, { guard: "Warn" }));
    const put = (path: string) => proxy.fetch(path, { method: "PUT", body: Buffer.from("{}") });
    const { status, headers } = await put("/api/v1/namespaces/b/pods/x");
    expect([status, headers.warning]).toEqual([200, expect.stringMatching(/^299 - ".*belongs to the default subset; it passes/)]);
    expect((await put("/api/v1/namespaces/a/pods/x")).headers).not.toHaveProperty("warning");
    expect(api.seen).toHaveLength(2);
    expect(await proxy.registry.metrics()).toContain(
      'ctrlmesh_proxy_decisions_total{decision="warned",verb="update",reason="other-subset"} 1',
    );
  });
});
