import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../../test/support/fake-clock.ts";
import { isolateDeps } from "../../../../test/support/isolate.ts";
import {
  type CallOptions,
  callOf,
  fakeUpstream,
  jsonReply,
  namesOf,
  textOf,
  watchCode,
} from "../../../../test/support/layer-call.ts";
import { group, snapshot, subset, table } from "../../../../test/support/route-table.ts";
import { recordingSink, scriptedSource } from "../../../../test/support/scripted-body.ts";
import { type Routes, routes } from "../../../../test/support/test-routes.ts";
import type { Logger } from "../../../base/log.ts";
import { createRegistry } from "../../../base/metrics.ts";
import { createStatus, StatusError } from "../../../kube/status.ts";
import type { ResourceScope } from "../../../mesh/ownership/plan-query.ts";
import type { Snapshot } from "../../../mesh/ownership/snapshot.ts";
import { createDiscovery } from "../../api-server/discovery.ts";
import type { Call, ResourceCall } from "../../call/call.ts";
import type { Reply } from "../../http/handler.ts";
import { createEnforcer } from "../../session/enforcer.ts";
import { isolate } from "./isolate.ts";
import { createForeignWrites, passForeign } from "./refusals.ts";

const PODS = "/api/v1/pods";
const item = (namespace: string, name: string) => ({ metadata: { namespace, name } });
const podList = (...items: object[]) =>
  jsonReply({ kind: "PodList", apiVersion: "v1", metadata: { resourceVersion: "7" }, items });
const everything = podList(item("a", "own"), item("b", "theirs"), item("new", "nobodys"));

/** The API server with this pod of version 5, and watches that say nothing. */
const serving = (namespace: string, name: string) => (call: Call) => {
  if (call.info.kind === "resource" && call.info.verb === "watch") return { ...jsonReply({}), body: scriptedSource() };
  return podList({ metadata: { namespace, name, resourceVersion: "5" } });
};
/** What the client of a watch reads from it. */
const watched = ({ body }: Reply) => {
  if (body === null || body instanceof Uint8Array) throw new Error("no source");
  const sink = recordingSink();
  body.open(sink);
  return sink;
};

function setup(
  first: Routes,
  answer: (call: Call) => Reply | Promise<Reply> = () => everything,
  scope: ResourceScope = "namespaced",
  more: Partial<Snapshot> = {},
) {
  const clock = createFakeClock();
  const session = createEnforcer();
  let version = 1;
  const enforce = (next: Routes, more: Partial<Snapshot> = {}) => session.enforce(routes(version++, next, more));
  enforce(first, more);
  const registry = createRegistry("proxy", "test");
  const upstream = fakeUpstream(answer);
  const layer = isolate(isolateDeps({ session, clock, registry, random: () => 0, discovery: { scopeOf: async () => scope } }));
  const handler = layer(upstream);
  const send = (method: string, target: string, options?: CallOptions) => handler(callOf(method, target, options));
  const refusal = async (method: string, target: string, options?: CallOptions) => {
    const error = await send(method, target, options).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    if (!(error instanceof StatusError)) throw new Error(`not refused: ${String(error)}`);
    return error.status;
  };
  return { clock, session, enforce, upstream, handler, send, refusal, registry };
}

describe("a request for one object", () => {
  it("passes in an own namespace, as it is", async () => {
    const { send, upstream } = setup({ blue: ["a"] });
    await send("GET", "/api/v1/namespaces/a/pods/x", { headers: { accept: "application/cbor" } });
    expect(upstream.calls[0]?.target).toBe("/api/v1/namespaces/a/pods/x");
    expect(upstream.calls[0]?.headers.accept).toBe("application/cbor");
  });

  it.each(["GET", "PUT", "PATCH", "DELETE"])(
    "%s in a foreign namespace is refused and says who owns it and what to do",
    async (method) => {
      const { refusal, upstream } = setup({ blue: ["a"], defaultSubset: ["b"] });
      const status = await refusal(method, "/api/v1/namespaces/b/pods/x");
      expect(status.code).toBe(403);
      expect(status.message).toMatch(/^ctrlmesh: .*"b" belongs to the default subset; .*VirtualApp shop\/app/);
      expect(upstream.calls).toEqual([]);
    },
  );

  it("in a moving namespace is answered 503 with a retry", async () => {
    const { refusal } = setup({ blue: ["a"], fenced: ["a"] });
    const status = await refusal("PUT", "/api/v1/namespaces/a/pods/x");
    expect([status.code, status.details?.retryAfterSeconds]).toEqual([503, 1]);
  });

  it("in an unknown namespace waits for the snapshot that says whose it is", async () => {
    const { send, enforce, upstream, clock } = setup({ blue: ["a"] });
    const reply = send("PUT", "/api/v1/namespaces/new/pods/x", { body: "{}" });
    await clock.advance(1_900);
    const puts = () => upstream.calls.filter(({ method }) => method === "PUT");
    expect(puts()).toEqual([]);
    enforce({ blue: ["a", "new"] });
    expect((await reply).status).toBe(200);
    expect(puts()).toHaveLength(1);
    expect(clock.pending).toBe(0);
  });

  it("in an unknown namespace is refused when the snapshot gives it to another subset", async () => {
    const { refusal, enforce, clock } = setup({ blue: ["a"] });
    const status = refusal("DELETE", "/api/v1/namespaces/new/pods/x");
    await clock.flush();
    enforce({ blue: ["a"], defaultSubset: ["new"] });
    expect((await status).code).toBe(403);
  });

  it("in an unknown namespace is answered 503 with a retry after two seconds", async () => {
    const { refusal, clock } = setup({ blue: ["a"] });
    const status = refusal("GET", "/api/v1/namespaces/new/pods/x");
    await clock.advance(2_000);
    expect([(await status).code, (await status).details?.retryAfterSeconds]).toEqual([503, 1]);
  });

  it("gives the wait up when the client goes", async () => {
    const { send, clock } = setup({ blue: ["a"] });
    const client = new AbortController();
    const reply = send("GET", "/api/v1/namespaces/new/pods/x", { signal: client.signal });
    await clock.flush();
    client.abort();
    await expect(reply).rejects.toMatchObject({ code: "ABORTED" });
    expect(clock.pending).toBe(0);
  });
});

describe("a write to another subset's object, where the guard only warns", () => {
  const POD_OF_B = "/api/v1/namespaces/b/pods/x";
  const warning = (verb: string, name = "x") =>
    `299 - "ctrlmesh: ${verb} pods \\"${name}\\": namespace \\"b\\" belongs to the default subset; it passes, since the guard is Warn"`;
  const warned = (answer?: Parameters<typeof setup>[1]) =>
    setup({ blue: ["a"], defaultSubset: ["b"] }, answer, "namespaced", { guard: "Warn" });

  it("passes, and its answer names the owner beside the API server's own warnings", async () => {
    const reply = { ...jsonReply({}), headers: { "content-type": "application/json", warning: '299 - "deprecated"' } };
    const { handler, upstream } = warned(() => reply);
    const call = callOf("PUT", POD_OF_B, { body: "{}" });
    expect((await handler(call)).headers.warning).toEqual(['299 - "deprecated"', warning("update")]);
    expect(upstream.calls.map(({ method }) => method)).toEqual(["PUT"]);
    expect(call.record).toMatchObject({ decision: "warned", reason: "other-subset" });
  });

  it("has a header that a strange name cannot break, nor an own write a warning", async () => {
    const { send } = warned();
    const strange = await send("DELETE", `/api/v1/namespaces/b/pods/${encodeURIComponent('é"\r\nx')}`);
    expect(strange.headers.warning).toEqual([expect.stringMatching(/^299 - "[ -~]*"$/)]);
    expect((await send("DELETE", "/api/v1/namespaces/a/pods/x")).headers).not.toHaveProperty("warning");
  });

  it("is refused while its namespace moves, and a deletecollection in any case; the get before it passes", async () => {
    const { refusal, send, enforce } = warned();
    expect((await send("GET", POD_OF_B)).headers.warning).toEqual([warning("get")]);
    expect((await refusal("DELETE", "/api/v1/namespaces/b/pods")).code).toBe(403);
    enforce({ blue: ["a", "b"], fenced: ["b"] }, { guard: "Warn" });
    expect((await refusal("PUT", POD_OF_B)).code).toBe(503);
  });

  it("is logged, but not more than once in a minute", async () => {
    const lines: unknown[] = [];
    const clock = createFakeClock();
    const log = { warn: (fields: unknown) => lines.push(fields) } as unknown as Logger;
    const withWarning = createForeignWrites(clock, log);
    const write = () => {
      const call = callOf("PUT", POD_OF_B) as ResourceCall;
      passForeign(call, "first");
      passForeign(call, "second");
      withWarning(call, jsonReply({}));
    };
    write();
    write();
    expect(lines).toEqual([{ writes: 1, last: "first" }]);
    await clock.advance(60_000);
    write();
    expect(lines).toEqual([
      { writes: 1, last: "first" },
      { writes: 2, last: "first" },
    ]);
  });

  it("goes on without an end, until the guard enforces again", async () => {
    const source = scriptedSource();
    const { send, enforce, session } = warned(() => ({ status: 200, headers: {}, body: source }));
    const sink = watched(await send("GET", `${POD_OF_B}/proxy/`));
    enforce({ blue: ["a", "c"], defaultSubset: ["b"] }, { guard: "Warn" });
    let settled = false;
    session.whenDrained(() => {
      settled = true;
    });
    source.write("more");
    expect([sink.text, sink.state, settled]).toEqual(["more", "open", true]);
    enforce({ blue: ["a"], defaultSubset: ["b"] });
    expect([sink.state, source.cancelled]).toEqual(["aborted", true]);
  });
});

describe("OpenShift's projects", () => {
  const PROJECTS = "/apis/project.openshift.io/v1/projects";
  const project = (name: string) => ({ metadata: { name } });
  const everyProject = () =>
    jsonReply({
      kind: "ProjectList",
      apiVersion: "project.openshift.io/v1",
      metadata: { resourceVersion: "7" },
      items: ["a", "b"].map(project),
    });

  it("are listed by their names as namespaces, and asked for without a field selector, which their server would ignore", async () => {
    const { send, upstream } = setup({ blue: ["a"], defaultSubset: ["b"] }, everyProject, "cluster");
    expect(await namesOf(await send("GET", PROJECTS))).toEqual(["a"]);
    expect(upstream.calls.map(({ target }) => target)).toEqual([PROJECTS]);
  });

  it("are watched by their names as namespaces", async () => {
    const source = scriptedSource();
    const answer = () => ({ status: 200, headers: { "content-type": "application/json" }, body: source });
    const { send } = setup({ blue: ["a"], defaultSubset: ["b"] }, answer, "cluster");
    const { body } = await send("GET", `${PROJECTS}?watch=1`);
    if (body === null || body instanceof Uint8Array) throw new Error("no source");
    const sink = recordingSink();
    body.open(sink);
    const frame = (name: string) => `${JSON.stringify({ type: "ADDED", object: project(name) })}\n`;
    source.write(frame("b") + frame("a"));
    expect(sink.text).toBe(frame("a"));
  });

  it("may be asked whether they can be requested: the answer is a Status", async () => {
    const status = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success" };
    const { send } = setup({ blue: ["a"], defaultSubset: ["b"] }, () => jsonReply(status), "cluster");
    const reply = await send("GET", "/apis/project.openshift.io/v1/projectrequests");
    expect(JSON.parse(await textOf(reply))).toEqual(status);
  });
});

describe("a request in a namespace that does not exist", () => {
  const identity = { authorization: "Bearer t", "impersonate-user": "u", accept: "application/vnd.kubernetes.protobuf" };
  const gone = "/api/v1/namespaces/gone";
  const missing = (call: Call) =>
    call.target.startsWith(gone) ? jsonReply(createStatus("NotFound", `not found: ${call.target}`), 404) : everything;

  it.each([
    ["GET", `${gone}/pods/x`],
    ["DELETE", `${gone}/pods/x?propagationPolicy=Foreground`],
    ["PUT", `${gone}/pods/x/status`],
    ["POST", `${gone}/pods/x/exec?command=sh`],
    ["DELETE", gone],
  ])("%s %s is answered at once as the API server answers a get of the object", async (method, target) => {
    const { send, upstream, clock } = setup({ blue: ["a"] }, missing);
    const reply = await send(method, target, { headers: { ...identity, "content-length": "2" }, body: "{}" });
    const asked = target.startsWith(`${gone}/`) ? `${gone}/pods/x` : gone;
    expect([reply.status, JSON.parse(await textOf(reply)).message]).toEqual([404, `not found: ${asked}`]);
    expect(upstream.calls.map((call) => [call.method, call.target, call.headers, call.body])).toEqual([
      ["GET", asked, identity, null],
    ]);
    // Limits decide about the client's call alone.
    expect(upstream.calls[0]?.record.serves).toBeDefined();
    expect(clock.pending).toBe(0);
  });

  it.each([
    ["POST", `${gone}/pods`, "application/json"],
    ["DELETE", `${gone}/pods`, ""],
    ["PATCH", `${gone}/pods/x?fieldManager=f`, "application/apply-patch+yaml"],
  ])("%s %s (%s) is answered at once as the API server answers a get of the namespace", async (method, target, type) => {
    const { send, upstream } = setup({ blue: ["a"] }, missing);
    const reply = await send(method, target, { headers: { ...identity, "content-type": type }, body: "{}" });
    expect([reply.status, JSON.parse(await textOf(reply)).message]).toEqual([404, `not found: ${gone}`]);
    expect(upstream.calls.map((call) => [call.method, call.target])).toEqual([["GET", gone]]);
  });

  it("a list is empty at once, and its watch is told what the namespace holds once that is granted", async () => {
    const { send, upstream, clock, enforce } = setup({ blue: ["a", "b"] }, (call) =>
      call.target === gone ? missing(call) : serving("gone", "x")(call),
    );
    expect(await namesOf(await send("GET", `${gone}/pods`))).toEqual([]);
    expect(upstream.calls.map((call) => call.info.query.get("fieldSelector"))).toEqual([null, "metadata.namespace!=gone"]);
    expect(clock.pending).toBe(0);
    enforce({ blue: ["a", "b", "gone"] });
    const sink = watched(await send("GET", `${gone}/pods?watch=1&resourceVersion=7`));
    await clock.flush();
    expect(sink.text).toMatch(/^{"type":"ADDED","object":{.*"namespace":"gone","name":"x"/);
  });

  it("a watch of its whole state is empty at once, and ends once the namespace is granted", async () => {
    const { send, upstream, clock, enforce } = setup({ blue: ["a", "b"] }, (call) =>
      call.target === gone ? missing(call) : serving("gone", "x")(call),
    );
    const sink = watched(await send("GET", `${gone}/pods?watch=1`));
    expect(upstream.calls.map((call) => call.info.query.get("fieldSelector"))).toEqual([null, "metadata.namespace!=gone"]);
    enforce({ blue: ["a", "b", "gone"] });
    await clock.advance(1_000);
    expect(sink.text).toMatch(/"code":410/);
  });

  it.each([200, 403, 500])("shows nothing of an object whose get is answered %s: it is held as before", async (status) => {
    const body = scriptedSource();
    const { refusal, clock } = setup({ blue: ["a"] }, () => ({ status, headers: {}, body }));
    const answer = refusal("GET", "/api/v1/namespaces/new/pods/x");
    await clock.advance(2_000);
    expect((await answer).code).toBe(503);
    expect([body.opened, body.cancelled]).toEqual([false, true]);
  });

  it("is held although the question about it fails", async () => {
    const { refusal, clock } = setup({ blue: ["a"] }, () => Promise.reject(new Error("broken")));
    const answer = refusal("GET", "/api/v1/namespaces/new/pods/x");
    await clock.advance(2_000);
    expect((await answer).code).toBe(503);
  });

  it("that is created before the answer comes is decided by its owner", async () => {
    let answer: (reply: Reply) => void = () => undefined;
    const { send, refusal, upstream, enforce, clock } = setup({ blue: ["a"] }, (call) =>
      call.method === "GET" ? new Promise((resolve) => (answer = resolve)) : everything,
    );
    const own = send("POST", `${gone}/pods`, { body: "{}" });
    await clock.flush();
    enforce({ blue: ["a", "gone"] });
    expect((await own).status).toBe(200);
    expect(upstream.calls[0]?.signal.aborted).toBe(true);
    enforce({ blue: ["a"] });
    const foreign = refusal("POST", `${gone}/pods`, { body: "{}" });
    await clock.flush();
    enforce({ blue: ["a"], defaultSubset: ["gone"] });
    answer(missing(callOf("GET", gone)));
    expect((await foreign).code).toBe(403);
  });

  it("gives the question up when the client goes", async () => {
    const { send, upstream, clock } = setup({ blue: ["a"] }, () => new Promise<Reply>(() => undefined));
    const client = new AbortController();
    const reply = send("GET", `${gone}/pods/x`, { signal: client.signal });
    await clock.flush();
    client.abort();
    await expect(reply).rejects.toMatchObject({ code: "ABORTED" });
    expect(upstream.calls[0]?.signal.aborted).toBe(true);
  });
});

describe("a read without an end", () => {
  const log = "/api/v1/namespaces/a/pods/x/log?follow=true";

  it("of an own namespace breaks off once the namespace is lost", async () => {
    for (const target of [log, "/api/v1/namespaces/a/services/x/proxy/stream"]) {
      const source = scriptedSource();
      const { send, enforce } = setup({ blue: ["a"] }, () => ({
        status: 200,
        headers: { "content-type": "text/plain" },
        body: source,
      }));
      const { body } = await send("GET", target);
      if (body === null || body instanceof Uint8Array) throw new Error("no source");
      const sink = recordingSink();
      body.open(sink);
      source.write("own");
      enforce({ defaultSubset: ["a"] });
      source.write("theirs");
      expect([sink.text, sink.state, source.cancelled]).toEqual(["own", "aborted", true]);
    }
  });

  it("shows nothing if the namespace was lost while the API server answered", async () => {
    for (const target of [log, "/api/v1/namespaces/a/pods?watch=1"]) {
      const source = scriptedSource();
      let answer: () => void = () => undefined;
      const gate = new Promise<void>((resolve) => {
        answer = resolve;
      });
      const { send, enforce, clock } = setup({ blue: ["a"] }, async () => {
        await gate;
        return { status: 200, headers: { "content-type": "application/cbor-seq" }, body: source };
      });
      const reply = send("GET", target);
      await clock.flush();
      enforce({ defaultSubset: ["a"] });
      answer();
      const { body } = await reply;
      if (body === null || body instanceof Uint8Array) throw new Error("no source");
      const sink = recordingSink();
      body.open(sink);
      await clock.flush();
      source.write("FOREIGN BYTES");
      expect([sink.text, sink.state]).toEqual(["", "aborted"]);
    }
  });

  it.each([
    ["GET", "/api/v1/namespaces/a/pods/x/exec"],
    ["POST", "/api/v1/namespaces/a/pods/x/exec"],
    ["GET", "/apis/subresources.kubevirt.io/v1/namespaces/a/virtualmachineinstances/x/console"],
  ])("through a tunnel is ended as well, and its write is not counted for ever: %s %s", async (method, target) => {
    const { send, enforce, session } = setup({ blue: ["a"] }, (call) => ({
      status: 101,
      headers: {},
      body: null,
      tunnel: call,
    }));
    const reply = await send(method, target, { upgrade: "websocket" });
    expect(reply.tunnel?.signal.aborted).toBe(false);
    enforce({ defaultSubset: ["a"] });
    expect(reply.tunnel?.signal.aborted).toBe(true);
    const settled: string[] = [];
    session.whenDrained(() => settled.push("now"));
    expect(settled).toEqual(["now"]);
  });
});

describe("a write in flight", () => {
  it("delays the acknowledgement of a snapshot that takes its namespace away, until its answer has begun", async () => {
    const { promise, resolve } = Promise.withResolvers<Reply>();
    const { send, session, enforce } = setup({ blue: ["a"] }, () => promise);
    const reply = send("PUT", "/api/v1/namespaces/a/pods/x", { body: "{}" });
    enforce({ defaultSubset: ["a"] });
    let settled = false;
    session.whenDrained(() => {
      settled = true;
    });
    await Promise.resolve();
    expect(settled).toBe(false);
    resolve({ status: 200, headers: {}, body: scriptedSource() }); // which the client never reads
    await reply;
    expect(settled).toBe(true);
  });

  it.each(["exec", "attach", "portforward", "proxy/restart"])(
    "is every %s too, also by GET as WebSockets make it",
    async (subresource) => {
      for (const method of ["GET", "POST"]) {
        const { promise, resolve } = Promise.withResolvers<Reply>();
        const { send, session, enforce } = setup({ blue: ["a"] }, () => promise);
        const reply = send(method, `/api/v1/namespaces/a/pods/x/${subresource}`);
        enforce({ defaultSubset: ["a"] });
        let settled = false;
        session.whenDrained(() => {
          settled = true;
        });
        await Promise.resolve();
        expect([method, settled]).toEqual([method, false]);
        resolve(jsonReply({}));
        await reply;
        expect([method, settled]).toEqual([method, true]);
      }
    },
  );

  it("by a node's proxy delays a snapshot that takes any namespace away, since it reaches the pods of all", async () => {
    const { promise, resolve } = Promise.withResolvers<Reply>();
    const { send, session, clock } = setup({}, () => promise);
    const undivided = snapshot(table([], { a: [] }), { version: 7, digest: "7" });
    session.enforce(undivided);
    const reply = send("GET", "/api/v1/nodes/n/proxy/run/x");
    await clock.flush();
    session.enforce(snapshot(table([subset("blue", group("", "configmaps"))], { a: [0] }), { version: 8, digest: "8" }));
    const settled: string[] = [];
    session.whenDrained(() => settled.push("now"));
    expect(settled).toEqual([]);
    resolve(jsonReply({}));
    await reply;
    expect(settled).toEqual(["now"]);
  });

  it("that reads what is stored is none, nor is a review", async () => {
    for (const [method, target] of [
      ["GET", "/api/v1/namespaces/a/pods/x"],
      ["GET", "/api/v1/namespaces/a/pods/x/log?follow=1"],
      ["POST", "/apis/authorization.k8s.io/v1/namespaces/a/localsubjectaccessreviews"],
    ] as const) {
      const { send, session } = setup({ blue: ["a"] }, () => new Promise<Reply>(() => undefined));
      void send(method, target);
      expect([target, session.isQuiet]).toEqual([target, true]);
    }
  });

  it("whose client has gone counts until the API server has answered, since it may still be carried out", async () => {
    let answer: (reply: Reply) => void = () => undefined;
    const { send, session, enforce, clock } = setup({ blue: ["a"] }, () => new Promise((resolve) => (answer = resolve)));
    const client = new AbortController();
    const reply = send("PUT", "/api/v1/namespaces/a/pods/x", { body: "{}", signal: client.signal });
    await clock.flush();
    client.abort();
    enforce({ defaultSubset: ["a"] });
    const settled: string[] = [];
    session.whenDrained(() => settled.push("now"));
    await clock.flush();
    expect(settled).toEqual([]);
    answer(jsonReply({}));
    await reply;
    expect(settled).toEqual(["now"]);
  });

  it("that fails is not counted for ever", async () => {
    const { send, session, enforce } = setup({ blue: ["a"] }, () => Promise.reject(new Error("broken")));
    await expect(send("PUT", "/api/v1/namespaces/a/pods/x")).rejects.toThrow("broken");
    enforce({ defaultSubset: ["a"] });
    const settled: string[] = [];
    session.whenDrained(() => settled.push("now"));
    expect(settled).toEqual(["now"]);
  });

  it("in a namespace that stays delays nothing", async () => {
    const { send, session, enforce } = setup({ blue: ["a", "b"] }, () => new Promise<Reply>(() => undefined));
    void send("PUT", "/api/v1/namespaces/a/pods/x");
    enforce({ blue: ["a"], defaultSubset: ["b"] });
    const settled: string[] = [];
    session.whenDrained(() => settled.push("now"));
    expect(settled).toEqual(["now"]);
  });
});

describe("a list over all namespaces", () => {
  it("asks for what the server can filter, keeps the caller's query, and filters the rest", async () => {
    const { send, upstream } = setup({ blue: ["a"], defaultSubset: ["b"] });
    const target = `${PODS}?labelSelector=x%3Dy&fieldSelector=status.phase%3DRunning&limit=500`;
    const reply = await send("GET", target, {
      headers: { accept: "application/cbor,application/json", "accept-encoding": "gzip" },
    });
    expect(await namesOf(reply)).toEqual(["own"]);
    const sent = upstream.calls[0];
    expect(sent?.info.query.get("fieldSelector")).toBe("status.phase=Running,metadata.namespace=a");
    expect(sent?.info.query.get("labelSelector")).toBe("x=y");
    expect(sent?.info.query.get("limit")).toBe("500");
    expect(sent?.headers.accept).toBe("application/json");
    expect(sent?.headers["accept-encoding"]).toBe("identity");
    expect(reply.headers["content-length"]).toBeUndefined();
  });

  it("asks a Table for the metadata that the filter needs", async () => {
    const { send, upstream } = setup({ blue: ["a"], defaultSubset: ["b"] });
    await send("GET", `${PODS}?includeObject=None`, { headers: { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" } });
    expect(upstream.calls[0]?.info.query.get("includeObject")).toBe("Metadata");
  });

  it("an attacker's second fieldSelector cannot replace ours", async () => {
    const { send, upstream } = setup({ blue: ["a"], defaultSubset: ["b"] });
    await send("GET", `${PODS}?fieldSelector=a%3Db&fieldSelector=metadata.namespace%3Db`);
    expect(upstream.calls[0]?.info.query.getAll("fieldSelector")).toEqual(["a=b,metadata.namespace=a"]);
  });

  it("asks again without the push-down where the server does not know the field, and remembers it", async () => {
    const bad = jsonReply({ kind: "Status" }, 400);
    const { send, upstream } = setup({ blue: ["a"], defaultSubset: ["b"] }, (call) =>
      call.target.includes("fieldSelector") ? bad : everything,
    );
    expect(await namesOf(await send("GET", PODS))).toEqual(["own"]);
    expect(await namesOf(await send("GET", PODS))).toEqual(["own"]);
    expect(upstream.calls).toHaveLength(3);
  });

  it("that the server finds bad without our push-down too is answered so, and nothing is remembered", async () => {
    const { send, upstream } = setup({ blue: ["a"], defaultSubset: ["b"] }, () => jsonReply({ kind: "Status" }, 400));
    expect((await send("GET", `${PODS}?labelSelector=%21%21`)).status).toBe(400);
    await send("GET", PODS);
    expect(upstream.calls[2]?.info.query.get("fieldSelector")).toBe("metadata.namespace=a");
  });

  it.each([
    ["application/cbor", undefined],
    ["text/html", undefined],
    ["application/json", "gzip"],
  ])("fails closed on a reply of type %s with coding %s", async (type, coding) => {
    const body = scriptedSource();
    const headers = { "content-type": type, ...(coding === undefined ? {} : { "content-encoding": coding }) };
    const { refusal } = setup({ blue: ["a"], defaultSubset: ["b"] }, () => ({ status: 200, headers, body }));
    expect((await refusal("GET", PODS)).code).toBe(406);
    expect(body.cancelled).toBe(true);
  });

  it("breaks the connection when the list cannot be read to its end", async () => {
    const source = scriptedSource();
    const { send } = setup({ blue: ["a"], defaultSubset: ["b"] }, () => ({
      status: 200,
      headers: { "content-type": "application/json" },
      body: source,
    }));
    const { body } = await send("GET", PODS);
    if (body === null || body instanceof Uint8Array) throw new Error("no source");
    const sink = recordingSink();
    body.open(sink);
    source.write('{"kind":"PodList","items":[');
    source.end();
    expect(sink.state).toBe("aborted");
  });

  it("passes the server's own errors", async () => {
    const { send } = setup({ blue: ["a"], defaultSubset: ["b"] }, () => jsonReply({ kind: "Status", code: 403 }, 403));
    expect((await send("GET", PODS)).status).toBe(403);
  });

  it("owning nothing is valid: an empty list, not an error", async () => {
    const { send } = setup({ defaultSubset: ["a", "b"] });
    const reply = await send("GET", PODS);
    expect(reply.status).toBe(200);
    expect(JSON.parse(await textOf(reply))).toMatchObject({ metadata: { resourceVersion: "7" }, items: [] });
  });

  it("in a foreign namespace is empty as well", async () => {
    const { send, upstream } = setup({ blue: ["a"], defaultSubset: ["b"] }, () => podList(item("b", "theirs")));
    expect(await namesOf(await send("GET", "/api/v1/namespaces/b/pods"))).toEqual([]);
    expect(upstream.calls[0]?.info.query.get("fieldSelector")).toBe("metadata.namespace!=b");
  });

  it("in an unknown namespace is empty after the wait", async () => {
    const { send, clock } = setup({ blue: ["a"] }, () => podList(item("new", "nobodys")));
    const reply = send("GET", "/api/v1/namespaces/new/pods");
    await clock.advance(2_000);
    expect(JSON.parse(await textOf(await reply)).items).toEqual([]);
  });

  it("asks the scope only where it matters", async () => {
    const { send, upstream } = setup({ blue: ["a"], defaultSubset: ["b"] }, () => everything, "cluster");
    await send("GET", "/apis/x.io/v1/things");
    expect(upstream.calls[0]?.info.query.get("fieldSelector")).toBeNull();
  });
});

describe("a watch", () => {
  const watch = `${PODS}?watch=true&resourceVersion=7`;

  it("from a list that left a namespace out is told what that holds once it is granted", async () => {
    const { send, enforce, clock } = setup({ blue: ["a", "c"] }, serving("new", "x"));
    expect(await namesOf(await send("GET", PODS))).toEqual([]); // nobody knows "new" yet
    enforce({ blue: ["a", "c", "new"], defaultSubset: ["b"] });
    const sink = watched(await send("GET", watch));
    await clock.flush();
    expect(sink.text).toMatch(/"namespace":"new","name":"x"/);
  });

  it("is told of a move although another client has listed since, in the same shape or in another", async () => {
    const { send, enforce, clock } = setup({ blue: ["a"], defaultSubset: ["b"] }, serving("b", "x"));
    await textOf(await send("GET", PODS));
    enforce({ blue: ["a", "b"] });
    await textOf(await send("GET", PODS));
    await textOf(await send("GET", `${PODS}?labelSelector=app`));
    for (const [from, told] of [
      [watch, true],
      [`${watch}&labelSelector=app`, true],
      [`${PODS}?watch=true&resourceVersion=8`, false],
    ] as const) {
      const sink = watched(await send("GET", from));
      await clock.flush();
      expect(sink.text.includes('"name":"x"')).toBe(told);
    }
  });

  it("goes on after its client's list, though both name different user agents", async () => {
    const { send, enforce } = setup({ blue: ["a"], defaultSubset: ["b"] });
    enforce({ blue: ["a", "b"] });
    await send("GET", PODS, { headers: { "user-agent": "kubernetes-client-javascript/2.0.1" } });
    expect(watchCode(await send("GET", watch, { headers: { "user-agent": "undici" } }))).toBe(200);
  });

  it("that sends the whole state first is never answered 410", async () => {
    const { send, enforce } = setup({ blue: ["a"], defaultSubset: ["b"] });
    enforce({ blue: ["a", "b"] });
    expect(watchCode(await send("GET", `${watch}&sendInitialEvents=true`))).toBe(200);
    expect(watchCode(await send("GET", `${PODS}?watch=1`))).toBe(200);
  });

  it("over a WebSocket is refused, so that no frame passes unfiltered", async () => {
    const { refusal, upstream } = setup({ blue: ["a"], defaultSubset: ["b"] });
    expect((await refusal("GET", watch, { upgrade: "websocket" })).code).toBe(503);
    expect(upstream.calls).toEqual([]);
  });
});

describe("a deletecollection", () => {
  it("over all namespaces is refused, since it would reach foreign objects", async () => {
    const { refusal, upstream } = setup({ blue: ["a"], defaultSubset: ["b"] });
    expect((await refusal("DELETE", PODS)).code).toBe(403);
    expect(upstream.calls).toEqual([]);
  });

  it("passes in an own namespace and is refused in a foreign one", async () => {
    const { send, refusal } = setup({ blue: ["a"], defaultSubset: ["b"] });
    expect((await send("DELETE", "/api/v1/namespaces/a/pods")).status).toBe(200);
    expect((await refusal("DELETE", "/api/v1/namespaces/b/pods")).code).toBe(403);
  });
});

it("lets lock traffic and requests for no resource pass", async () => {
  const { handler, upstream, send } = setup({ defaultSubset: ["shop"] });
  const lock = callOf("PUT", "/apis/coordination.k8s.io/v1/namespaces/shop/leases/x---blue");
  lock.record.lock = true;
  await handler(lock);
  await send("GET", "/version");
  expect(upstream.calls).toHaveLength(2);
});

it("counts the wait for discovery once", async () => {
  const clock = createFakeClock();
  const session = createEnforcer();
  session.enforce(routes(1, { blue: ["a"], defaultSubset: ["b"] }));
  const send = async () => {
    await clock.advance(40);
    return jsonReply({ resources: [{ name: "pods", namespaced: true }] });
  };
  const discovery = createDiscovery(send, clock);
  const upstream = fakeUpstream(() => jsonReply({ kind: "PodList", apiVersion: "v1", metadata: {}, items: [] }));
  const call = callOf("GET", "/api/v1/pods");
  await isolate(isolateDeps({ session, clock, discovery }))(upstream)(call);
  expect(call.record.waitedMs).toBe(40);
});
