// The lists that clients must repeat, seen through the isolate layer: for client-go's way (list, watch from its version, upon 410
// list and watch again) and for other clients.

import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { isolateDeps } from "../../../test/support/isolate.ts";
import { callOf, fakeUpstream, jsonReply, textOf, watchCode } from "../../../test/support/layer-call.ts";
import { fence, group, objects, snapshot, table } from "../../../test/support/route-table.ts";
import { recordingSink, scriptedSource } from "../../../test/support/scripted-body.ts";
import { type Routes, routes } from "../../../test/support/test-routes.ts";
import { createRegistry } from "../../base/metrics.ts";
import { StatusError } from "../../kube/status.ts";
import type { RouteRule } from "../../route/table.ts";
import { isolate } from "../layers/isolate/isolate.ts";
import { createEnforcer } from "../session/enforcer.ts";

const PODS = "/api/v1/pods";
const podList = jsonReply({ kind: "PodList", apiVersion: "v1", metadata: { resourceVersion: "100" }, items: [] });

// A process that has just started, with the state of its disk.
function startProcess(stored: Routes) {
  const clock = createFakeClock();
  const session = createEnforcer();
  let version = 0;
  const enforce = (next: Routes) => session.enforce(routes(++version, next));
  enforce(stored);
  let answer = () => podList;
  const watches: ReturnType<typeof scriptedSource>[] = [];
  const upstream = fakeUpstream((call) => {
    if (call.info.kind !== "resource" || call.info.verb !== "watch") return answer();
    const source = scriptedSource();
    watches.push(source);
    return { status: 200, headers: { "content-type": "application/json" }, body: source };
  });
  const discovery = { scopeOf: async () => "namespaced" as const };
  const handler = isolate(isolateDeps({ session, clock, random: () => 0, registry: createRegistry("proxy", "test"), discovery }))(
    upstream,
  );
  const send = async (target: string, method = "GET") => {
    try {
      return await handler(callOf(method, target));
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      return { status: error.status.code, headers: {}, body: null };
    }
  };
  return {
    clock,
    session,
    enforce,
    async list(target = PODS, method = "GET") {
      const reply = await send(target, method);
      await textOf(reply);
      return reply.status;
    },
    async watch(from: string, target = PODS) {
      const reply = await send(`${target}${target.includes("?") ? "&" : "?"}watch=1&resourceVersion=${from}`);
      const { body } = reply;
      const sink = recordingSink();
      if (body !== null && !(body instanceof Uint8Array)) body.open(sink);
      await clock.flush();
      return { status: watchCode(reply), sink, source: watches.at(-1) };
    },
    answerLists: (next: () => typeof podList) => {
      answer = next;
    },
  };
}

describe("an informer of client-go after a restart of the proxy", () => {
  it("is refused once, since the earlier process may have left something out, then lists and continues", async () => {
    const { list, watch } = startProcess({ blue: ["a", "b"] });
    expect((await watch("90")).status).toBe(410);
    expect(await list()).toBe(200);
    const { status, sink } = await watch("100");
    expect([status, sink.state]).toEqual([200, "open"]);
    expect((await watch("120")).status).toBe(200);
  });

  it("is refused although its resource was listed in another group or shape", async () => {
    const { list, watch } = startProcess({ blue: ["a"], defaultSubset: ["b"] });
    await list("/apis/metrics.k8s.io/v1/pods");
    await list(`${PODS}?labelSelector=app`);
    expect((await watch("90")).status).toBe(410);
  });

  it("lists again when a namespace is granted that an earlier list left out, however late", async () => {
    const { list, watch, enforce, clock, answerLists } = startProcess({ blue: ["a", "c"], defaultSubset: ["b"] });
    const items = [{ metadata: { namespace: "new", name: "x" } }];
    answerLists(() => jsonReply({ kind: "PodList", apiVersion: "v1", metadata: { resourceVersion: "100" }, items }));
    await list();
    const { sink } = await watch("100");
    await clock.advance(300_000);
    enforce({ blue: ["a", "c", "new"], defaultSubset: ["b"] });
    await clock.advance(1_000);
    expect(sink.text).toContain("Expired");
  });

  it.each(["", "0"])('needs no list before a watch from "%s", which counts as one', async (from) => {
    const { watch } = startProcess({ blue: ["a"], defaultSubset: ["b"] });
    expect((await watch(from)).status).toBe(200);
    expect((await watch("100")).status).toBe(200);
  });

  it("needs no list before a stream of initial events, which counts as one", async () => {
    const { watch } = startProcess({ blue: ["a"], defaultSubset: ["b"] });
    const initial = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    expect((await watch("90", `${PODS}?${initial}`)).status).toBe(200);
    expect((await watch("100")).status).toBe(200);
  });
});

it("a watch continues when more namespaces were left out than can be noted", async () => {
  const { list, watch, clock, answerLists } = startProcess({ blue: ["a", "c"], defaultSubset: ["b"] });
  const items = Array.from({ length: 10_001 }, (_, index) => ({ metadata: { namespace: `unknown-${index}`, name: "x" } }));
  answerLists(() => jsonReply({ kind: "PodList", apiVersion: "v1", metadata: { resourceVersion: "100" }, items }));
  await list();
  const { source, sink } = await watch("100");
  const event = (namespace: string) =>
    `${JSON.stringify({ type: "ADDED", object: { kind: "Pod", metadata: { namespace, name: "x" } } })}\n`;
  source?.write(event("one-more") + event("a"));
  await clock.advance(5_000);
  expect([sink.text, clock.pending]).toEqual([event("a"), 0]);
});

describe("a list", () => {
  it("that fails allows no watch", async () => {
    const { list, watch, answerLists } = startProcess({ blue: ["a"], defaultSubset: ["b"] });
    answerLists(() => jsonReply({ kind: "Status" }, 500));
    await list();
    expect((await watch("90")).status).toBe(410);
  });

  it("does not count if the routes changed for it meanwhile", async () => {
    const { list, watch, enforce, answerLists } = startProcess({ blue: ["a", "c"], defaultSubset: ["b"] });
    answerLists(() => {
      enforce({ blue: ["a", "b", "c"] });
      return podList;
    });
    await list();
    expect((await watch("100")).status).toBe(410);
  });

  it("is out of date after a change that touches it, however long ago", async () => {
    const { list, watch, enforce, clock } = startProcess({ blue: ["a"], defaultSubset: ["b"] });
    await list();
    await list("/api/v1/namespaces/a/pods");
    enforce({ blue: ["a", "b"] });
    await clock.advance(3_600_000);
    expect((await watch("100")).status).toBe(410);
    expect((await watch("100", "/api/v1/namespaces/a/pods")).status).toBe(200);
  });
});

describe("a client that lists in another shape than it watches", () => {
  it("is refused once and continues when a list of its resource has begun since", async () => {
    const { list, watch, enforce } = startProcess({ blue: ["a"], defaultSubset: ["b"] });
    const selected = `${PODS}?labelSelector=app`;
    for (const next of [{ blue: ["a", "b"] }, { blue: ["a"], defaultSubset: ["b"] }]) {
      await list();
      expect((await watch("100", selected)).status).toBe(410);
      expect((await watch("100", selected)).status).toBe(410);
      await list();
      const { status, sink } = await watch("100", selected);
      expect([status, sink.state]).toEqual([200, "open"]);
      enforce(next);
    }
  });

  it("continues after a list of one namespace only in that one", async () => {
    const { list, watch } = startProcess({ blue: ["a", "b"] });
    const inNamespace = (name: string) => `/api/v1/namespaces/${name}/pods`;
    for (const name of ["a", "b"]) expect((await watch("100", `${inNamespace(name)}?labelSelector=app`)).status).toBe(410);
    await list(inNamespace("a"));
    expect((await watch("100", `${inNamespace("a")}?labelSelector=app`)).status).toBe(200);
    expect((await watch("100", `${inNamespace("b")}?labelSelector=app`)).status).toBe(410);
  });

  it("continues a minute later from another version than the refused one if it never lists", async () => {
    const { watch, clock } = startProcess({ blue: ["a"], defaultSubset: ["b"] });
    expect((await watch("90")).status).toBe(410);
    await clock.advance(30_000);
    expect((await watch("95")).status).toBe(410);
    await clock.advance(30_000);
    expect((await watch("90")).status).toBe(410);
    expect((await watch("95")).status).toBe(200);
  });
});

it("an informer's list is remembered while its watch is open, however many other shapes are listed", async () => {
  const { list, watch } = startProcess({ blue: ["a"], defaultSubset: ["b"] });
  await list();
  const { source, sink } = await watch("100");
  for (let index = 0; index < 1_100; index++) await list(`${PODS}?labelSelector=owner%3D${index}`);
  source?.end();
  expect(sink.state).toBe("ended");
  expect((await watch("110")).status).toBe(200);
  expect((await watch("110", `${PODS}?labelSelector=owner%3D0`)).status).toBe(410);
});

it("a HEAD of a list shows nothing and allows no watch", async () => {
  const { list, watch } = startProcess({ blue: ["a"], defaultSubset: ["b"] });
  await list(PODS, "HEAD");
  expect((await watch("90")).status).toBe(410);
});

it("a list of one shard does not count for an informer of another", async () => {
  const { list, watch, enforce } = startProcess({ blue: ["a", "c"], defaultSubset: ["b"] });
  const shard = (name: string) => `${PODS}?shardSelector=${name}`;
  for (const name of ["one", "two"]) await list(shard(name));
  enforce({ blue: ["a", "b", "c"] });
  await list(shard("one"));
  expect((await watch("100", shard("one"))).status).toBe(200);
  expect((await watch("100", shard("two"))).status).toBe(410);
});

describe("a resource that is partitioned by label", () => {
  const PODS_RULE = group("", "pods");
  const start = (subset: string) => {
    const started = startProcess({});
    let version = 10;
    const divide = (...more: RouteRule[]) => {
      const rules = [objects("canary", "tier=gold", PODS_RULE), ...more];
      started.session.enforce(snapshot(table(rules, { a: [] }), { version: ++version, digest: `d${version}`, subset }));
    };
    divide();
    return { ...started, divide };
  };
  const foreign = `${JSON.stringify({ type: "MODIFIED", object: { metadata: { namespace: "a", name: "x", labels: { tier: "no" } } } })}\n`;

  it("ends a stream of initial events when it moves, although the last event was dropped", async () => {
    const { watch, divide, clock } = start("blue"); // which has no rule of its own: nothing is gained or lost
    const initial = `${PODS}?sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`;
    const { source, sink } = await watch("", initial);
    divide(fence(PODS_RULE));
    const annotations = { "k8s.io/initial-events-end": "true" };
    source?.write(`${JSON.stringify({ type: "BOOKMARK", object: { metadata: { resourceVersion: "9", annotations } } })}\n`);
    divide();
    await clock.advance(1_000);
    expect(sink.text).toContain("Expired");
  });

  it("costs each informer a list less often each time if the server does not filter by labels", async () => {
    const { list, watch, clock } = start("canary");
    const lists: number[] = [];
    const startMs = clock.monotonicMs();
    while (clock.monotonicMs() - startMs < 600_000) {
      await list();
      const { source, sink } = await watch("100");
      for (let second = 0; second < 600 && sink.state === "open"; second++) {
        source?.write(foreign);
        await clock.advance(1_000);
      }
      lists.push(Math.round((clock.monotonicMs() - startMs) / 1_000));
    }
    expect(lists.length).toBeLessThan(20);
    expect(lists.at(-1)).toBeGreaterThanOrEqual(600);
  });

  it("ends its watches at once when its rules change", async () => {
    const { list, watch, divide, clock } = start("canary");
    for (let round = 0; round < 6; round++) {
      await list();
      const { source } = await watch("100");
      source?.write(foreign);
      await clock.advance(round < 5 ? 60_000 : 0);
    }
    const { sink, source } = await watch("100");
    source?.write(foreign);
    divide(fence(PODS_RULE));
    await clock.advance(0);
    expect(sink.text).toContain("Expired");
  });
});
