import { describe, expect, it } from "vitest";
import { type CallOptions, callOf, fakeUpstream, jsonReply, textOf } from "../../../test/support/layer-call.ts";
import { recordingSink, scriptedSource } from "../../../test/support/scripted-body.ts";
import { routes } from "../../../test/support/test-routes.ts";
import { codecError } from "../../kube/codec/codec.ts";
import { NO_CALLER_POLICY } from "../../mesh/ownership/snapshot.ts";
import type { Call } from "../call/call.ts";
import { lenientFilter } from "../filter/filtered-body.ts";
import type { ByteSource } from "../http/byte-stream.ts";
import type { Reply } from "../http/handler.ts";
import { createEnforcer } from "../session/enforcer.ts";
import { ObjectStripper, strip } from "./strip.ts";

const POD = "/api/v1/namespaces/a/pods/x";
const managed = (name: string) => ({
  metadata: { name, namespace: "a", managedFields: [{ manager: "kubectl", operation: "Apply" }], uid: "u" },
});
const bare = (name: string) => ({ metadata: { name, namespace: "a", uid: "u" } });
const list = (item: (name: string) => object) => ({
  kind: "PodList",
  apiVersion: "v1",
  metadata: { resourceVersion: "7", continue: "c", remainingItemCount: 3 },
  items: [item("x"), { noMetadata: true }, item("y")],
});

function setup(answer: (call: Call) => Reply, stripManagedFields = true) {
  const session = createEnforcer();
  session.enforce(routes(1, { blue: ["a"] }, { callers: { ...NO_CALLER_POLICY, stripManagedFields } }));
  const upstream = fakeUpstream(answer);
  const stripped = { value: 0 };
  const handler = strip({ session, stripped })(upstream);
  const send = (method: string, target: string, options?: CallOptions) => handler(callOf(method, target, options));
  return { send, handler, upstream, stripped };
}

describe("with managedFields stripped", () => {
  it("a get and a list lose them and nothing else, and the bytes are counted", async () => {
    const object = setup(() => jsonReply({ kind: "Pod", apiVersion: "v1", ...managed("x") }));
    const reply = await object.send("GET", POD);
    expect(JSON.parse(await textOf(reply))).toEqual({ kind: "Pod", apiVersion: "v1", ...bare("x") });
    expect(reply.headers).not.toHaveProperty("content-length");
    const { send, stripped } = setup(() => jsonReply(list(managed)));
    expect(JSON.parse(await textOf(await send("GET", "/api/v1/pods")))).toEqual(list(bare));
    expect(stripped.value).toBe(JSON.stringify(list(managed)).length - JSON.stringify(list(bare)).length);
  });

  it("each event of a watch leaves as soon as it is there", async () => {
    const source = scriptedSource();
    const { send } = setup(() => ({ status: 200, headers: { "content-type": "application/json" }, body: source }));
    const sink = recordingSink();
    ((await send("GET", "/api/v1/pods?watch=1")).body as ByteSource).open(sink);
    const event = (object: object) => `${JSON.stringify({ type: "ADDED", object })}\n`;
    const whole = event(managed("x"));
    source.write(whole.slice(0, 20));
    source.write(whole.slice(20));
    expect(sink.text).toBe(event(bare("x")));
  });

  it("reads ask for what can be read", async () => {
    const { send, upstream } = setup(() => jsonReply({}));
    await send("GET", POD, { headers: { accept: "application/cbor, application/json", "accept-encoding": "gzip" } });
    expect(upstream.calls[0]?.headers).toMatchObject({ accept: "application/json", "accept-encoding": "identity" });
  });

  it.each([
    ["PUT", POD],
    ["PATCH", POD],
    ["POST", "/api/v1/namespaces/a/pods"],
    ["DELETE", POD],
    ["GET", `${POD}/log`],
    ["GET", `${POD}/proxy/metrics`],
    ["GET", "/apis"],
  ])("%s %s passes as it is, request and answer", async (method, target) => {
    const reply = jsonReply({ kind: "Pod", ...managed("x") });
    const { handler, upstream } = setup(() => reply);
    const call = callOf(method, target, { headers: { accept: "application/cbor" } });
    expect(await handler(call)).toBe(reply);
    expect(upstream.calls[0]).toBe(call);
  });

  it.each([
    ["a list's path that answers with something else", '{"gitVersion":"v1.2","goVersion":"x"}'],
    ["no JSON", "<html>"],
    ["items that are none", '{"kind":"Odd","items":{"a":1}}'],
    ["nothing", ""],
    ["a body that ends inside", '{"kind":"Odd","metadata":{'],
  ])("an answer that is no list passes as it is: %s", async (_, text) => {
    for (const pieces of [1, text.length]) {
      const source = scriptedSource();
      const { send } = setup(() => ({ status: 200, headers: { "content-type": "application/json" }, body: source }));
      const sink = recordingSink();
      ((await send("GET", "/apis/subresources.kubevirt.io/v1/version")).body as ByteSource).open(sink);
      for (let at = 0; at < text.length; at += text.length / pieces) source.write(text.slice(at, at + text.length / pieces));
      source.end();
      expect([sink.text, sink.state]).toEqual([text, "ended"]);
    }
    const protobuf = Buffer.from("k8s\0no list");
    const { send } = setup(() => ({
      status: 200,
      headers: { "content-type": "application/vnd.kubernetes.protobuf" },
      body: protobuf,
    }));
    expect(await textOf(await send("GET", "/api/v1/pods"))).toBe(protobuf.toString());
  });

  it("a list that turns out to be broken once a part of it has gone is broken off", async () => {
    const source = scriptedSource();
    const { send } = setup(() => ({ status: 200, headers: { "content-type": "application/json" }, body: source }));
    const sink = recordingSink();
    ((await send("GET", "/api/v1/pods")).body as ByteSource).open(sink);
    source.write(JSON.stringify(list(managed)).slice(0, -20));
    expect(sink.text).not.toBe("");
    source.end();
    expect(sink.state).not.toBe("ended");
  });

  it("an answer that is an error or in another encoding passes as it is", async () => {
    const failed = jsonReply({ kind: "Status", ...managed("x") }, 404);
    expect(await setup(() => failed).send("GET", POD)).toBe(failed);
    const yaml: Reply = { status: 200, headers: { "content-type": "application/yaml" }, body: Buffer.from("managedFields:") };
    expect(await setup(() => yaml).send("GET", POD)).toBe(yaml);
  });
});

it("where the app does not ask for it, nothing is touched", async () => {
  const reply = jsonReply(managed("x"));
  const { handler, upstream } = setup(() => reply, false);
  const call = callOf("GET", POD);
  expect([await handler(call), upstream.calls[0]]).toEqual([reply, call]);
});

describe("ObjectStripper", () => {
  it("passes what is larger than its bound as it is, without holding it", () => {
    const whole = JSON.stringify(managed("x"));
    const out: Buffer[] = [];
    const stripper = new ObjectStripper("json", 40);
    for (let at = 0; at < whole.length; at += 15)
      stripper.push(Buffer.from(whole.slice(at, at + 15)), (slice) => out.push(Buffer.from(slice)));
    expect(out.length).toBeGreaterThan(3);
    stripper.end((slice) => out.push(Buffer.from(slice)));
    expect(Buffer.concat(out).toString()).toBe(whole);
  });
});

const bytes = (text: string) => Buffer.from(text);

function through(fail: "never" | "at once" | "after a part" | "at the end", error: Error = codecError("CODEC_NOT_A_LIST", "no")) {
  const out: string[] = [];
  const filter = lenientFilter({
    heldBytes: 0,
    push(_chunk, emit) {
      if (fail === "at once") throw error;
      if (fail === "never" || fail === "after a part") emit(bytes("<part>"));
      if (fail === "after a part") throw error;
    },
    end(emit) {
      if (fail === "at the end") throw error;
      emit(bytes("<end>"));
    },
  });
  const emit = (slice: Uint8Array) => void out.push(Buffer.from(slice).toString());
  const run = () => {
    for (const chunk of ["a", "b", "c"]) filter.push(bytes(chunk), emit);
    filter.end(emit);
    return out.join("");
  };
  return run;
}

it("writes what the filter writes", () => expect(through("never")()).toBe("<part><part><part><end>"));

it("passes a body of which the filter has written nothing when it fails", () => {
  expect(through("at once")()).toBe("abc");
  expect(through("at the end")()).toBe("abc");
});

it("breaks a body of which a part has gone, and by a fault that is not the body's", () => {
  expect(through("after a part")).toThrow("no");
  expect(through("at once", new TypeError("a fault"))).toThrow("a fault");
});
