import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { isolateDeps } from "../../../test/support/isolate.ts";
import { type CallOptions, callOf, fakeUpstream, jsonReply, namesOf, textOf } from "../../../test/support/layer-call.ts";
import { recordingSink, scriptedSource } from "../../../test/support/scripted-body.ts";
import { routes } from "../../../test/support/test-routes.ts";
import { StatusError } from "../../kube/status.ts";
import { NO_CALLER_POLICY } from "../../mesh/ownership/snapshot.ts";
import type { Call } from "../call/call.ts";
import type { ByteSource } from "../http/byte-stream.ts";
import type { Reply } from "../http/handler.ts";
import { createEnforcer } from "../session/enforcer.ts";
import { caller, excludedCallers } from "./caller.ts";
import { isolate } from "./isolate/isolate.ts";

const PODS = "/api/v1/pods";
const AGENT = "foo-operator/v1.2 (linux/amd64)";
const item = (namespace: string, name: string) => ({ metadata: { namespace, name } });
const list = () =>
  jsonReply({
    kind: "PodList",
    apiVersion: "v1",
    metadata: { resourceVersion: "7" },
    items: [item("a", "own"), item("b", "theirs"), item("", "cluster"), item("new", "nobodys")],
  });

function setup(answer: (call: Call) => Reply | Promise<Reply> = list, subset = "blue") {
  const clock = createFakeClock();
  const session = createEnforcer();
  let version = 1;
  const enforce = (...defaultOnlyUserAgents: string[]) => {
    const callers = { ...NO_CALLER_POLICY, defaultOnlyUserAgents };
    session.enforce(routes(version++, { blue: ["a"], defaultSubset: ["b"] }, { callers, subset }));
  };
  const deps = isolateDeps({ session, clock });
  const upstream = fakeUpstream(answer);
  const handler = caller({ session })(excludedCallers(deps)(isolate(deps)(upstream)));
  const send = (method: string, target: string, options: CallOptions = {}) =>
    handler(callOf(method, target, { ...options, headers: { "user-agent": AGENT, ...options.headers } }));
  return { clock, enforce, send, upstream, handler };
}

/** A watch that has begun. */
async function watching(of: ReturnType<typeof setup>, source: ReturnType<typeof scriptedSource>, target: string, headers = {}) {
  const sink = recordingSink();
  const reply = await of.send("GET", target, { headers });
  (reply.body as ByteSource).open(sink);
  await of.clock.flush();
  return { sink, source };
}

const asWatch = (source: ReturnType<typeof scriptedSource>) => (): Reply => ({
  status: 200,
  headers: { "content-type": "application/json" },
  body: source,
});

describe("a caller that is excluded from the subset", () => {
  it("gets an empty list with a real resourceVersion, of all namespaces and of one", async () => {
    const { enforce, send } = setup();
    enforce("foo-operator/*");
    for (const target of [
      PODS,
      "/api/v1/namespaces/a/pods",
      "/api/v1/namespaces/b/pods",
      "/api/v1/nodes",
      "/api/v1/namespaces",
    ]) {
      expect(await namesOf(await send("GET", target)), target).toEqual([]);
    }
    expect(JSON.parse(await textOf(await send("GET", PODS)))).toMatchObject({ metadata: { resourceVersion: "7" }, items: [] });
  });

  it("gets an idle watch: only bookmarks pass", async () => {
    const source = scriptedSource();
    const of = setup(asWatch(source));
    of.enforce("foo-operator/*");
    const { sink } = await watching(of, source, `${PODS}?watch=1`);
    source.write(`${JSON.stringify({ type: "ADDED", object: item("a", "own") })}\n`);
    source.write(`${JSON.stringify({ type: "ADDED", object: item("new", "nobodys") })}\n`);
    const bookmark = `${JSON.stringify({ type: "BOOKMARK", object: { kind: "Pod", metadata: { resourceVersion: "9" } } })}\n`;
    source.write(bookmark);
    expect(sink.text).toBe(bookmark);
  });

  it.each([
    ["GET", "/api/v1/namespaces/a/pods/x"],
    ["POST", "/api/v1/namespaces/a/pods"],
    ["PUT", "/api/v1/namespaces/a/pods/x/status"],
    ["PATCH", "/api/v1/nodes/n"],
    ["DELETE", "/api/v1/namespaces/a/pods"],
  ])("may not %s %s, and the answer names the rule", async (method, target) => {
    const { enforce, send, upstream } = setup();
    enforce("other", "foo-operator/*");
    const error = await send(method, target, { body: "{}" }).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(StatusError);
    const { code, message } = (error as StatusError).status;
    expect(code).toBe(403);
    expect(message).toContain('spec.route.subsetDefaultOnlyUserAgents of the VirtualApp has "foo-operator/*"');
    expect(upstream.calls).toEqual([]);
  });

  it("has discovery, reviews of access and the leader-election lock all the same", async () => {
    const { enforce, send, handler, upstream } = setup(() => jsonReply({ kind: "Whatever" }));
    enforce("foo-operator/*");
    expect((await send("GET", "/apis")).status).toBe(200);
    const review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    expect((await send("POST", review, { body: "{}" })).status).toBe(200);
    const lock = callOf("PUT", "/apis/coordination.k8s.io/v1/namespaces/shop/leases/l", { headers: { "user-agent": AGENT } });
    lock.record.lock = true;
    expect((await handler(lock)).status).toBe(200);
    expect(upstream.calls).toHaveLength(3);
  });
});

describe("everybody else", () => {
  it("is served in the same pod, and the caller itself in the default subset", async () => {
    const { enforce, send } = setup();
    enforce("foo-operator/*");
    expect(await namesOf(await send("GET", PODS, { headers: { "user-agent": "foo-operator-2/v1" } }))).toEqual(["own"]);
    const defaultSubset = setup(list, "");
    defaultSubset.enforce("foo-operator/*");
    expect(await namesOf(await defaultSubset.send("GET", PODS))).toEqual(["theirs", "cluster"]);
  });
});

describe("a change of the list", () => {
  const both = async (first: string[], then: string[]) => {
    const source = scriptedSource();
    const of = setup((call) => (call.info.query.has("watch") ? asWatch(source)() : list()));
    of.enforce(...first);
    const { sink } = await watching(of, source, `${PODS}?watch=1`);
    of.enforce(...then);
    await of.clock.advance(1_000);
    return { of, sink };
  };

  it("ends the watch of a caller that comes onto it with 410, and what it lists then is empty", async () => {
    const { of, sink } = await both([], ["foo-operator/*"]);
    expect(sink.text).toContain('"reason":"Expired"');
    expect(await namesOf(await of.send("GET", PODS))).toEqual([]);
  });

  it("ends the idle watch of a caller that leaves it with 410, and what it lists then is its own", async () => {
    const { of, sink } = await both(["foo-operator/*"], []);
    expect(sink.text).toContain('"reason":"Expired"');
    expect(await namesOf(await of.send("GET", PODS))).toEqual(["own"]);
  });

  it("lets no watch go on from a list that was made under the other list", async () => {
    for (const [first, then] of [
      [[], ["foo-operator/*"]],
      [["foo-operator/*"], []],
    ] as const) {
      const of = setup();
      of.enforce(...first);
      await textOf(await of.send("GET", PODS));
      of.enforce(...then);
      expect(await textOf(await of.send("GET", `${PODS}?watch=1&resourceVersion=7`))).toContain('"reason":"Expired"');
    }
  });

  it("lets it not go on either because another caller has listed the same", async () => {
    const of = setup();
    of.enforce("foo-operator/*");
    await textOf(await of.send("GET", PODS));
    await textOf(await of.send("GET", PODS, { headers: { "user-agent": "other" } }));
    of.enforce();
    expect(await textOf(await of.send("GET", `${PODS}?watch=1&resourceVersion=7`))).toContain('"reason":"Expired"');
  });

  it("ends a watch at once that was decided under the other list", async () => {
    const source = scriptedSource();
    const answer = Promise.withResolvers<Reply>();
    const of = setup(() => answer.promise);
    of.enforce("foo-operator/*");
    const pending = of.send("GET", `${PODS}?watch=1`);
    of.enforce();
    answer.resolve(asWatch(source)());
    const sink = recordingSink();
    ((await pending).body as ByteSource).open(sink);
    await of.clock.flush();
    expect(sink.text).toContain('"reason":"Expired"');
  });

  it("leaves the watches of the default subset alone", async () => {
    const source = scriptedSource();
    const of = setup(asWatch(source), "");
    of.enforce();
    const { sink } = await watching(of, source, `${PODS}?watch=1`);
    of.enforce("foo-operator/*");
    await of.clock.advance(5_000);
    expect([sink.text, source.cancelled]).toEqual(["", false]);
  });
});
