// What a request is told while a handover runs, by its verb, and what a pod may do in a namespace that it
// only shows until it is restarted.

import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../../test/support/fake-clock.ts";
import { isolateDeps } from "../../../../test/support/isolate.ts";
import { type CallOptions, callOf, fakeUpstream, jsonReply, textOf, watchCode } from "../../../../test/support/layer-call.ts";
import { fence, group, snapshot, subset, table } from "../../../../test/support/route-table.ts";
import { recordingSink, type ScriptedSource, scriptedSource } from "../../../../test/support/scripted-body.ts";
import { type Routes, routes } from "../../../../test/support/test-routes.ts";
import { createRegistry } from "../../../base/metrics.ts";
import { isStatus, type Status } from "../../../kube/status.ts";
import type { Call } from "../../call/call.ts";
import type { Reply } from "../../http/handler.ts";
import { createEnforcer } from "../../session/enforcer.ts";
import { type IsolateDeps, isolate } from "./isolate.ts";

const PODS = "/api/v1/namespaces/n/pods";
const LIST = jsonReply({ kind: "PodList", apiVersion: "v1", metadata: { resourceVersion: "7" }, items: [] });

function setup(first: Routes, answer: (call: Call) => Reply | Promise<Reply> = () => LIST, more: Partial<IsolateDeps> = {}) {
  const clock = createFakeClock();
  const session = createEnforcer();
  let version = 1;
  const enforce = (next: Routes) => session.enforce(routes(version++, next));
  enforce(first);
  const upstream = fakeUpstream(answer);
  const discovery = { scopeOf: async () => "namespaced" as const };
  const registry = createRegistry("proxy", "test");
  const handler = isolate(isolateDeps({ session, clock, registry, random: () => 0, discovery, ...more }))(upstream);
  const send = (method: string, target: string, options?: CallOptions) => handler(callOf(method, target, options));
  const refusal = async (method: string, target: string): Promise<Status> => {
    try {
      await send(method, target, { body: "{}" });
    } catch (error) {
      if (isStatus(error, "Forbidden", "ServiceUnavailable")) return error.status;
      throw error;
    }
    throw new Error(`not refused: ${method} ${target}`);
  };
  return { clock, session, enforce, upstream, send, refusal };
}

describe("while a handover runs", () => {
  const moving: Routes = { blue: ["a", "n"], fenced: ["n"] };

  it.each([
    ["POST", PODS],
    ["PUT", `${PODS}/x`],
    ["DELETE", `${PODS}/x`],
    ["DELETE", PODS],
    ["GET", `${PODS}/x`],
    ["GET", PODS],
    ["GET", `${PODS}?resourceVersion=0`],
    ["GET", `${PODS}?watch=1`],
    ["GET", `${PODS}?watch=1&resourceVersion=0`],
    ["GET", `${PODS}?watch=1&resourceVersion=7&sendInitialEvents=true&resourceVersionMatch=NotOlderThan`],
  ])("%s %s is told that it runs, to whom, and when to ask again", async (method, target) => {
    const { refusal, upstream } = setup(moving);
    const status = await refusal(method, target);
    expect([status.code, status.details?.retryAfterSeconds]).toEqual([503, 1]);
    expect(status.message).toMatch(/a handover runs: namespace "n" moves to subset "blue"; try again in 1 s$/);
    expect(status.details?.causes).toMatchObject([{ reason: "HandoverRunning" }]);
    expect(upstream.calls).toEqual([]);
  });

  it("a watch from an old list is told to list again, without a time to wait, which would keep its version alive", async () => {
    const { send, upstream } = setup(moving);
    const reply = await send("GET", `${PODS}?watch=1&resourceVersion=7`);
    expect([watchCode(reply), reply.headers["retry-after"]]).toEqual([410, undefined]);
    expect(await textOf(reply)).not.toContain("retryAfter");
    expect(upstream.calls).toEqual([]);
  });

  it("a resource that moves as a whole is answered the same", async () => {
    const { refusal, send, session } = setup({});
    session.enforce(snapshot(table([subset("blue"), fence(group("", "pods"))], { n: [0] }), { version: 9, subset: "blue" }));
    for (const target of ["/api/v1/pods", PODS]) {
      const status = await refusal("GET", target);
      expect([status.code, status.message]).toEqual([503, expect.stringContaining("the resource moves between subsets")]);
      expect(watchCode(await send("GET", `${target}?watch=1&resourceVersion=7`))).toBe(410);
    }
  });

  it("a list of all namespaces shows what is not moving", async () => {
    const { send, upstream } = setup({ blue: ["a", "n"], defaultSubset: ["b"], fenced: ["n"] });
    expect((await send("GET", "/api/v1/pods")).status).toBe(200);
    expect(upstream.calls[0]?.info.query.get("fieldSelector")).toBe("metadata.namespace=a");
  });
});

describe("a namespace that the pod goes on showing", () => {
  const owned: Routes = { blue: ["a", "n"], defaultSubset: ["b"] };
  const shown: Routes = { blue: ["a"], defaultSubset: ["b", "n"], retained: ["n"] };

  const open = async (target: string, source: ScriptedSource, type = "text/plain") => {
    const { send, enforce } = setup(owned, () => ({ status: 200, headers: { "content-type": type }, body: source }));
    const { body } = await send("GET", target);
    if (body === null || body instanceof Uint8Array) throw new Error("no source");
    const sink = recordingSink();
    body.open(sink);
    return { sink, enforce };
  };

  it.each([
    ["POST", PODS],
    ["PUT", `${PODS}/x`],
    ["PATCH", `${PODS}/x/status`],
    ["DELETE", PODS],
    ["POST", `${PODS}/x/eviction`],
    ["GET", `${PODS}/x/exec?command=sh`],
    ["GET", `${PODS}/x/proxy/metrics`],
    ["GET", "/api/v1/namespaces/n/services/x/proxy/metrics"],
    ["DELETE", "/api/v1/namespaces/n"],
  ])("%s %s is refused, and says until when it is shown", async (method, target) => {
    const { refusal, upstream } = setup(shown);
    const { code, message } = await refusal(method, target);
    expect(code).toBe(403);
    expect(message).toMatch(/"n" belongs to the default subset; this pod goes on showing it, read only, until it is restarted; /);
    expect(message).toMatch(/edit the route of the VirtualApp shop\/app$/);
    expect(upstream.calls).toEqual([]);
  });

  it.each([PODS, `${PODS}/x`, `${PODS}/x/status`, `${PODS}/x/log`, "/api/v1/namespaces/n"])(
    "GET %s passes as it is",
    async (target) => {
      const { send, upstream } = setup(shown);
      await send("GET", target);
      expect(upstream.calls.map((call) => call.target)).toEqual([target]);
    },
  );

  it("says in a refusal while it moves back to whom, and that it is shown", async () => {
    const { refusal, send } = setup({ blue: ["a", "n"], fenced: ["n"], retained: ["n"] });
    const { code, message } = await refusal("PUT", `${PODS}/x`);
    expect([code, message]).toEqual([503, expect.stringContaining('moves to subset "blue"; this pod goes on showing it')]);
    expect((await send("GET", PODS)).status).toBe(200);
  });

  it("is asked for with what is owned when all namespaces are listed, and kept in the answer", async () => {
    const item = (namespace: string) => ({ metadata: { namespace, name: `in-${namespace}` } });
    const list = jsonReply({ kind: "PodList", apiVersion: "v1", metadata: {}, items: ["a", "b", "n"].map(item) });
    const { send, upstream } = setup(shown, () => list);
    const text = await textOf(await send("GET", "/api/v1/pods"));
    expect(upstream.calls[0]?.info.query.get("fieldSelector")).toBe("metadata.namespace!=b");
    expect(["in-a", "in-b", "in-n"].filter((name) => text.includes(name))).toEqual(["in-a", "in-n"]);
  });

  it("stays in a list on its way, and in the later pages of one", async () => {
    const source = scriptedSource();
    const { sink, enforce } = await open("/api/v1/pods", source, "application/json");
    const item = (name: string) => JSON.stringify({ metadata: { namespace: "n", name } });
    source.write(`{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[${item("first")},`);
    enforce(shown);
    source.write(`${item("second")}]}`);
    source.end();
    expect(sink.text).toContain("second");

    const { send, upstream } = setup({ defaultSubset: ["b", "n"], retained: ["n"] });
    await send("GET", "/api/v1/pods?limit=1");
    const token = Buffer.from(JSON.stringify({ v: "meta.k8s.io/v1", rv: 7, start: "n/first" })).toString("base64url");
    await send("GET", `/api/v1/pods?limit=1&continue=${token}`);
    const selectors = upstream.calls.map(({ info }) => info.query.get("fieldSelector"));
    expect(selectors).toEqual(["metadata.namespace=n", "metadata.namespace!=b"]);
  });

  it("is not acknowledged while a write from before is under way there", async () => {
    const answer = Promise.withResolvers<Reply>();
    const { send, session, enforce } = setup(owned, () => answer.promise);
    const reply = send("PUT", `${PODS}/x`, { body: "{}" });
    enforce(shown);
    let settled = false;
    session.whenDrained(() => {
      settled = true;
    });
    expect([settled, session.drainingWrites]).toEqual([false, 1]);
    answer.resolve(jsonReply({}));
    await reply;
    expect([settled, session.drainingWrites]).toEqual([true, 0]);
  });

  it("has its logs followed on, and ends what reaches into its pods", async () => {
    const [log, proxy] = [scriptedSource(), scriptedSource()];
    const followed = await open(`${PODS}/x/log?follow=true`, log);
    const reached = await open(`${PODS}/x/proxy/stream`, proxy);
    for (const { enforce } of [followed, reached]) enforce(shown);
    expect([followed.sink.state, reached.sink.state]).toEqual(["open", "aborted"]);
    followed.enforce({ blue: ["a"], defaultSubset: ["b", "n"] });
    expect(followed.sink.state).toBe("aborted");
  });

  it("is watched on in an encoding that cannot be read", async () => {
    const { sink, enforce } = await open(`${PODS}?watch=1`, scriptedSource(), "application/cbor-seq");
    for (const next of [shown, owned, shown]) enforce(next);
    expect(sink.state).toBe("open");
    enforce({ blue: ["a"], defaultSubset: ["b", "n"] });
    expect(sink.state).toBe("aborted");
  });

  it.each(["/api/v1/pods", PODS])("is watched on in %s, and back, until it is shown no more", async (path) => {
    const source = scriptedSource();
    const { sink, enforce } = await open(`${path}?watch=1`, source, "application/json");
    let count = 0;
    const event = () => {
      const text = `${JSON.stringify({ type: "MODIFIED", object: { kind: "Pod", metadata: { namespace: "n", name: `x${count++}` } } })}\n`;
      source.write(text);
      return text;
    };
    let expected = event();
    for (const next of [shown, owned, shown, { ...owned, fenced: ["n"], retained: ["n"] }, owned, shown]) {
      enforce(next);
      expected += event();
      expect([sink.text, sink.state]).toEqual([expected, "open"]);
    }
    enforce({ blue: ["a"], defaultSubset: ["b", "n"] });
    event();
    expect(sink.text).toBe(expected);
  });
});

describe("requests that wait for a namespace's owner", () => {
  it("are counted by namespace, and told when the number changes", async () => {
    const { send, session, enforce, clock } = setup({ blue: ["a"] }, () => LIST);
    const told: number[] = [];
    session.onBacklogChange(() => told.push(session.heldNamespaces));
    const held = ["n", "n", "m"].map((name) => send("GET", `/api/v1/namespaces/${name}/pods/x`));
    await clock.flush();
    expect(session.heldNamespaces).toBe(2);
    enforce({ blue: ["a", "n", "m"] });
    await Promise.all(held);
    expect([session.heldNamespaces, told]).toEqual([0, [1, 2, 1, 0]]);
  });

  it("are no more than there are places for; the next ones are told at once to come again", async () => {
    const { send, refusal, enforce, clock, session, upstream } = setup({ blue: ["a"] }, undefined, { maxHeld: 2 });
    const held = ["n", "m"].map((name) => send("PUT", `/api/v1/namespaces/${name}/pods/x`, { body: "{}" }));
    await clock.flush();
    const status = await refusal("PUT", "/api/v1/namespaces/o/pods/x");
    expect([status.code, status.details?.retryAfterSeconds, session.heldNamespaces]).toEqual([503, 1, 2]);
    // A list is answered with nothing. Its watch is told what the namespace holds once that is granted.
    await textOf(await send("GET", "/api/v1/namespaces/o/pods"));
    enforce({ blue: ["a", "n", "m", "o"] });
    await Promise.all(held);
    await send("GET", "/api/v1/namespaces/o/pods?watch=1&resourceVersion=7");
    expect(upstream.calls.at(-2)?.target).toBe("/api/v1/namespaces/o/pods?resourceVersion=7&resourceVersionMatch=Exact");
    expect((await send("PUT", "/api/v1/namespaces/o/pods/x", { body: "{}" })).status).toBe(200);
  });

  it("give their places back when time is over", async () => {
    const { refusal, clock, session } = setup({ blue: ["a"] }, undefined, { maxHeld: 1 });
    for (let round = 0; round < 3; round++) {
      const status = refusal("PUT", "/api/v1/namespaces/n/pods/x");
      await clock.advance(1_999);
      expect(session.heldNamespaces).toBe(1);
      await clock.advance(1);
      expect((await status).code).toBe(503);
      expect(session.heldNamespaces).toBe(0);
    }
  });
});
