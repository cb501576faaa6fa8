// The push-down as the isolate layer's caller and the API server see it.

import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../../test/support/fake-clock.ts";
import { isolateDeps, oneListOnly } from "../../../../test/support/isolate.ts";
import { callOf, fakeUpstream, jsonReply, namesOf, textOf } from "../../../../test/support/layer-call.ts";
import { group, objects as labelRule, table } from "../../../../test/support/route-table.ts";
import { recordingSink, scriptedSource } from "../../../../test/support/scripted-body.ts";
import { answerList, type Server, select } from "../../../../test/support/simulated-server.ts";
import { type Routes, routes } from "../../../../test/support/test-routes.ts";
import { createRegistry } from "../../../base/metrics.ts";
import type { Snapshot } from "../../../mesh/ownership/snapshot.ts";
import type { Call } from "../../call/call.ts";
import type { Reply } from "../../http/handler.ts";
import { createEnforcer } from "../../session/enforcer.ts";
import { isolate } from "../isolate/isolate.ts";
import { createPlanLog } from "./plan-log.ts";
import { MAX_TARGET_BYTES } from "./server-side-filter.ts";

const PODS = "/api/v1/pods";
const many = (prefix: string, count: number) => Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
const OWN = many("own", 40);
const FOREIGN = many("foreign", 40);
const objects = [...OWN, ...FOREIGN].map((namespace) => ({ namespace, name: `x-${namespace}` }));

function setup(of: Routes, answer: Partial<Server> | ((call: Call) => Reply | Promise<Reply>) = {}) {
  const clock = createFakeClock();
  const session = createEnforcer();
  let version = 1;
  const enforce = (next: Routes, more: Partial<Snapshot> = {}) => session.enforce(routes(version++, next, more));
  enforce(of);
  const registry = createRegistry("proxy", "test");
  const plans = createPlanLog(clock);
  const upstream = fakeUpstream(typeof answer === "function" ? answer : (call) => answerList({ objects, ...answer }, call));
  const discovery = { scopeOf: async () => "namespaced" as const };
  const handler = isolate(
    isolateDeps({ session, clock, registry, plans, features: oneListOnly(clock), random: () => 0, discovery }),
  )(upstream);
  const send = async (target: string, method = "GET") => {
    const call = callOf(method, target);
    const reply = await handler(call);
    return { reply, plan: call.record.plan };
  };
  const list = async (target = PODS) => {
    const { reply, plan } = await send(target);
    return { names: (await namesOf(reply)).sort(), plan };
  };
  const shardsOf = (index: number) => upstream.calls[index]?.info.query.get("shardSelector") ?? null;
  const metric = async (name: string) =>
    (await registry.getSingleMetricAsString(name)).split("\n").filter((line) => !line.startsWith("#"));
  return { clock, enforce, upstream, send, list, shardsOf, metric, plans };
}

const owned = OWN.map((name) => `x-${name}`).sort();

describe("a shard selector", () => {
  it("is sent without asking first, and the API server leaves the foreign objects out", async () => {
    const { list, upstream, shardsOf } = setup({ blue: OWN, defaultSubset: FOREIGN });
    expect(await list()).toEqual({ names: owned, plan: "shards" });
    expect(upstream.calls).toHaveLength(1);
    expect(
      select({ objects }, new URLSearchParams({ shardSelector: shardsOf(0) ?? "" }))
        .map(({ name }) => name)
        .sort(),
    ).toEqual(owned);
  });

  it("that is ignored is found out by what comes all the same, and tried again after five minutes", async () => {
    const knows = { shards: false };
    const { list, shardsOf, clock } = setup({ blue: OWN, defaultSubset: FOREIGN }, knows);
    expect(await list()).toEqual({ names: owned, plan: "shards" });
    expect(await list()).toEqual({ names: owned, plan: "none" });
    expect(shardsOf(1)).toBeNull();
    await clock.advance(5 * 60_000);
    expect((await list()).plan).toBe("shards");
  });

  it("that is ignored is found out by foreign objects in a list", async () => {
    const custom = { apiVersion: "v1", items: [{ metadata: objects.at(-1) }], kind: "PodList", metadata: {} };
    const { list } = setup({ blue: OWN, defaultSubset: FOREIGN }, () => jsonReply(custom));
    expect(await list()).toEqual({ names: [], plan: "shards" });
    expect(await list()).toEqual({ names: [], plan: "none" });
  });

  it("that is ignored is found out by a watch as well", async () => {
    const source = scriptedSource();
    const { send } = setup({ blue: OWN, defaultSubset: FOREIGN }, () => ({ ...jsonReply({}), body: source }));
    const { reply, plan } = await send(`${PODS}?watch=1`);
    if (reply.body === null || reply.body instanceof Uint8Array) throw new Error("no source");
    const sink = recordingSink();
    reply.body.open(sink);
    const event = (namespace: string) => `${JSON.stringify({ type: "ADDED", object: { metadata: { namespace, name: "x" } } })}\n`;
    source.write(event("own-1") + event("foreign-1"));
    expect([plan, sink.text]).toEqual(["shards", event("own-1")]);
    expect((await send(`${PODS}?watch=1`)).plan).toBe("none");
  });

  it("is known apart for each resource, since another API server may serve it", async () => {
    const { list } = setup({ blue: OWN, defaultSubset: FOREIGN }, { shards: false });
    await list();
    expect((await list()).plan).toBe("none");
    expect((await list("/api/v1/configmaps")).plan).toBe("shards");
  });

  it.each([414, 431])(
    "of a URL that is too long (%s) is left out of this one alone, as most of it may be the caller's",
    async (status) => {
      const { list, upstream, shardsOf } = setup({ blue: OWN, defaultSubset: FOREIGN }, (call) =>
        call.info.query.has("shardSelector") && call.info.query.has("labelSelector")
          ? jsonReply({ kind: "Status" }, status)
          : answerList({ objects: objects.map((object) => ({ ...object, labels: { long: "" } })) }, call),
      );
      expect((await list(`${PODS}?labelSelector=long`)).plan).toBe("none");
      expect((await list()).plan).toBe("shards");
      expect([upstream.calls.length, shardsOf(2) === null]).toEqual([3, false]);
    },
  );

  it("of labels likewise: a watch without it would end at every foreign change", async () => {
    const { list, enforce, upstream } = setup({}, (call) =>
      call.target.length > 8_000 ? jsonReply({ kind: "Status" }, 414) : answerList({ objects: [] }, call),
    );
    enforce({}, { table: table([labelRule("blue", "tier=gold", group("", "pods"))], { a: [] }) });
    expect((await list(`${PODS}?labelSelector=${"x".repeat(7_960)}`)).plan).toBe("none");
    expect((await list()).plan).toBe("labels");
    expect(upstream.calls).toHaveLength(3);
  });

  it("that is refused with 400 is left out for ten minutes", async () => {
    const { list, upstream, clock } = setup({ blue: OWN, defaultSubset: FOREIGN }, (call) =>
      call.info.query.has("shardSelector") ? jsonReply({ kind: "Status" }, 400) : answerList({ objects }, call),
    );
    expect(await list()).toEqual({ names: owned, plan: "none" });
    expect(await list()).toEqual({ names: owned, plan: "none" });
    expect(upstream.calls).toHaveLength(3);
    await clock.advance(10 * 60_000);
    await list();
    expect(upstream.calls).toHaveLength(5);
  });

  it("that the API server cannot read, which is a 500 there, is left out; any other 500 is the caller's", async () => {
    let message = "invalid shard selector: CEL parse error";
    const { send, upstream } = setup({ blue: OWN, defaultSubset: FOREIGN }, (call) =>
      call.info.query.has("shardSelector") ? jsonReply({ kind: "Status", message }, 500) : answerList({ objects }, call),
    );
    expect((await send(PODS)).reply.status).toBe(200);
    message = "etcd is away";
    const { reply } = await send("/api/v1/configmaps");
    expect([reply.status, JSON.parse(await textOf(reply)).message]).toEqual([500, message]);
    expect(upstream.calls).toHaveLength(3);
  });

  it("is not added to the caller's own, which stays as it is", async () => {
    const own = `shardRange(object.metadata.namespace,'0x0000000000000000','0x8000000000000000')`;
    const { list, upstream } = setup({ blue: OWN, defaultSubset: FOREIGN });
    const asked = `${PODS}?shardSelector=${encodeURIComponent(own)}`;
    const wanted = select({ objects }, new URLSearchParams({ shardSelector: own })).filter(({ namespace }) =>
      OWN.includes(namespace),
    );
    expect((await list(asked)).names).toEqual(wanted.map(({ name }) => name).sort());
    expect(upstream.calls[0]?.target).toBe(asked);
  });

  it("becomes shorter where the caller's own selectors are long, and is left out where they are too long", async () => {
    const { send, upstream, plans } = setup({ blue: OWN, defaultSubset: FOREIGN });
    await send(PODS);
    for (const length of [6_000, 7_900]) {
      const { reply } = await send(`${PODS}?labelSelector=%21${"x".repeat(length)}`);
      expect((await namesOf(reply)).sort()).toEqual(owned);
    }
    const [roomy, tight, none] = upstream.calls;
    expect(tight?.target.length).toBeLessThanOrEqual(MAX_TARGET_BYTES);
    const length = (call: Call | undefined) => call?.info.query.get("shardSelector")?.length ?? 0;
    expect(length(tight)).toBeGreaterThan(500);
    expect(length(roomy)).toBeGreaterThan(length(tight));
    expect(none?.info.query.has("shardSelector")).toBe(false);
    expect(plans.list()[0]?.notSent).toEqual([{ feature: "shards", why: "too-long" }]);
  });
});

describe("what a shard selector has hidden", () => {
  // So many, all over the space of hashes, that gaps between foreign namespaces have to be closed.
  const crowd = many("foreign", 600).map((name) => `${name}-in-production`);

  it("is told once it is granted, where a watch goes on from a list that did not show it", async () => {
    const { list, enforce, send, upstream, shardsOf } = setup({ blue: OWN, defaultSubset: crowd });
    await list();
    const shown = new URLSearchParams({ shardSelector: shardsOf(0) ?? "" });
    const names = many("born", 99)
      .map((name) => `${name}-in-production`)
      .map((namespace) => ({ namespace, name: "x" }));
    const seen = new Set(select({ objects: names }, shown).map(({ namespace }) => namespace));
    const [hidden] = names.filter(({ namespace }) => !seen.has(namespace));
    if (hidden === undefined) throw new Error("no such namespace");
    enforce({ blue: [...OWN, hidden.namespace], defaultSubset: crowd });
    await send(`${PODS}?watch=1&resourceVersion=7`);
    const exact = `/api/v1/namespaces/${hidden.namespace}/pods?resourceVersion=7&resourceVersionMatch=Exact`;
    expect(upstream.calls[1]?.target).toBe(exact);
  });
});

describe("a field selector that is refused", () => {
  it("is blamed after the shard selector, each for itself", async () => {
    const { list, upstream, clock } = setup({ blue: OWN, defaultSubset: ["foreign-1"] }, { refuses: ["fieldSelector"] });
    expect((await list()).plan).toBe("none");
    expect((await list()).plan).toBe("none");
    expect(upstream.calls).toHaveLength(3);
    await clock.advance(10 * 60_000 + 1);
    await list();
    expect(upstream.calls).toHaveLength(5);
  });

  it("for the caller's own fault costs one request more and is not remembered", async () => {
    const { send, upstream } = setup({ blue: OWN, defaultSubset: FOREIGN }, () => jsonReply({ kind: "Status" }, 400));
    for (const calls of [2, 4]) {
      expect((await send(PODS)).reply.status).toBe(400);
      expect(upstream.calls).toHaveLength(calls);
    }
  });
});

describe("a chunked list", () => {
  const three = { objects: many("x", 5).flatMap((name) => ["a", "b"].map((namespace) => ({ namespace, name }))) };
  const walk = async (t: ReturnType<typeof setup>, between: (page: number) => void = () => undefined) => {
    const names: string[] = [];
    let token: string | undefined = "";
    for (let page = 0; token !== undefined; page++) {
      const { reply } = await t.send(`${PODS}?limit=2${token === "" ? "" : `&continue=${token}`}`);
      const body = JSON.parse(await textOf(reply)) as {
        items: { metadata: { name: string } }[];
        metadata: { continue?: string };
      };
      names.push(...body.items.map(({ metadata }) => metadata.name));
      token = body.metadata.continue;
      between(page);
    }
    return names;
  };

  it("of one namespace holds all its objects, though the API server would lose those after the first page", async () => {
    const t = setup({ blue: ["b"], defaultSubset: ["a"] }, three);
    expect(await walk(t)).toEqual(many("x", 5));
    expect(t.upstream.calls.map(({ info }) => info.path)).toEqual([
      PODS,
      "/api/v1/namespaces/b/pods",
      "/api/v1/namespaces/b/pods",
    ]);
  });

  it("goes on in its one namespace when the routes change meanwhile", async () => {
    for (const later of [{ blue: ["a", "b"] }, { blue: ["b", "c"], defaultSubset: ["a"] }]) {
      const t = setup({ blue: ["b"], defaultSubset: ["a"] }, three);
      expect(await walk(t, (page) => page === 0 && t.enforce(later))).toEqual(many("x", 5));
    }
  });

  it("goes on in its one namespace when nothing is narrowed any more", async () => {
    const t = setup({ blue: ["b"], defaultSubset: ["a"] }, three);
    const all = { table: table([], { a: [], b: [] }), subset: "" };
    expect(await walk(t, (page) => page === 0 && t.enforce({}, all))).toEqual(many("x", 5));
  });

  it("of all namespaces goes on so when only one is left", async () => {
    const t = setup({ blue: ["a", "b"], defaultSubset: ["c"] }, three);
    expect(await walk(t, (page) => page === 0 && t.enforce({ blue: ["b"], defaultSubset: ["a", "c"] }))).toEqual([
      "x-0",
      "x-1",
      ...many("x", 5),
    ]);
    expect(t.upstream.calls.slice(1).every(({ info }) => !info.query.get("fieldSelector")?.includes("namespace=b"))).toBe(true);
  });

  it("is to be begun anew where nobody knows any more which namespace it was of", async () => {
    const t = setup({ blue: ["b"], defaultSubset: ["a"] }, three);
    const { reply } = await t.send(`${PODS}?limit=2`);
    const token = JSON.parse(await textOf(reply)).metadata.continue as string;
    const page = `${PODS}?limit=2&continue=${token}`;
    expect((await t.send(page)).reply.status).toBe(200);
    t.enforce({ blue: ["a"], defaultSubset: ["b"] });
    await t.send(`${PODS}?limit=2`);
    await expect(t.send(page)).rejects.toMatchObject({ status: { code: 410, reason: "Expired" } });
    const restarted = setup({ blue: ["b"], defaultSubset: ["a"] }, three);
    await expect(restarted.send(page)).rejects.toMatchObject({ status: { code: 410 } });
  });

  it("with a token of another storage is asked for as its first page was", async () => {
    const t = setup({ blue: ["b"], defaultSubset: ["a"] }, () =>
      jsonReply({ kind: "PodList", metadata: { continue: "opaque" }, items: [] }),
    );
    await t.send(`${PODS}?limit=2`);
    await t.send(`${PODS}?limit=2&continue=opaque`);
    expect(t.upstream.calls.map(({ info }) => [info.path, info.query.get("fieldSelector")])).toEqual([
      [PODS, "metadata.namespace=b"],
      [PODS, "metadata.namespace=b"],
    ]);
    t.enforce({ blue: ["a"], defaultSubset: ["b"] });
    await expect(t.send(`${PODS}?limit=2&continue=opaque`)).rejects.toMatchObject({ status: { code: 410 } });
  });

  it("whose caller has chosen the namespace itself is left to it", async () => {
    const t = setup({ blue: ["b"], defaultSubset: ["a"] }, three);
    const own = `${PODS}?limit=2&continue=${Buffer.from('{"v":"meta.k8s.io/v1","rv":7,"start":"/x-1"}').toString("base64url")}`;
    await t.send(`${own}&fieldSelector=metadata.namespace%3Db`);
    expect(t.upstream.calls[0]?.info.path).toBe(PODS);
  });
});

it("counts requests and bytes by plan, and what the residual filter dropped", async () => {
  const { list, metric } = setup({ blue: OWN, defaultSubset: FOREIGN }, { shards: false });
  await list();
  await list();
  const value = (lines: readonly string[], labels: string) => Number(lines.find((line) => line.includes(labels))?.split(" ")[1]);
  const requests = await metric("ctrlmesh_proxy_pushdown_total");
  expect([value(requests, 'plan="shards"'), value(requests, 'plan="none"')]).toEqual([1, 1]);
  const bytes = await metric("ctrlmesh_proxy_pushdown_bytes_total");
  const [read, sent] = [value(bytes, 'plan="none",side="read"'), value(bytes, 'plan="none",side="sent"')];
  expect(sent).toBeGreaterThan(1_000);
  const filtered = await metric("ctrlmesh_proxy_filtered_bytes_total");
  expect(2 * (read - sent)).toBe(value(filtered, "filtered_bytes_total"));
  expect(value(await metric("ctrlmesh_proxy_filtered_objects_total"), 'plan="none"')).toBe(40);
});

it("logs the last plan of each resource without a word of a selector", async () => {
  const { send, plans } = setup({ blue: OWN, defaultSubset: FOREIGN });
  await send(`${PODS}?labelSelector=secret%3Dvalue`);
  expect(plans.list()).toEqual([
    {
      group: "",
      resource: "pods",
      verb: "list",
      plan: "shards",
      selectorChars: { label: 12, field: 0, shard: expect.any(Number) },
      namespaces: { own: 40, foreign: 40 },
      notSent: [],
      status: 200,
      requests: 1,
      at: expect.stringMatching(/Z$/),
    },
  ]);
});
