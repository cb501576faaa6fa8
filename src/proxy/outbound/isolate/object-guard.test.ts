import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../../test/support/fake-clock.ts";
import { isolateDeps } from "../../../../test/support/isolate.ts";
import { type CallOptions, callOf, fakeUpstream, jsonReply, namesOf, textOf } from "../../../../test/support/layer-call.ts";
import { fence, group, limit, objects, snapshot, subset, table, unreportedFence } from "../../../../test/support/route-table.ts";
import { recordingSink, scriptedSource } from "../../../../test/support/scripted-body.ts";
import { createRegistry } from "../../../base/metrics.ts";
import { createStatus, StatusError } from "../../../kube/status.ts";
import type { Guard } from "../../../mesh/ownership/snapshot.ts";
import type { RouteRule } from "../../../mesh/ownership/table.ts";
import { type Call, clientsRecord } from "../../call/call.ts";
import type { Reply } from "../../http/handler.ts";
import { createEnforcer } from "../../session/enforcer.ts";
import { isolate } from "./isolate.ts";

type Labels = Record<string, string>;
const GOLD = { tier: "gold" };
const FOOS = group("demo.io", "foos");
const ALL = "/apis/demo.io/v1/foos";
const IN_A = "/apis/demo.io/v1/namespaces/a/foos";
const foo = (name: string, labels: Labels | undefined) => ({
  apiVersion: "demo.io/v1",
  kind: "Foo",
  metadata: { name, namespace: "a", ...(labels === undefined ? {} : { labels }) },
});
const body = (labels: Labels | undefined, type = "application/json"): CallOptions => ({
  headers: { "content-type": type },
  body: JSON.stringify(foo("x", labels)),
});
const json = (value: unknown, type: string): CallOptions => ({
  headers: { "content-type": `application/${type}` },
  body: JSON.stringify(value),
});

interface World {
  /** Labels of the stored foos by name. */
  readonly stored?: Readonly<Record<string, Labels | undefined>>;
  /** What a patch or an update of the status makes of the labels. */
  readonly result?: Labels;
  readonly subset?: string;
  readonly guard?: Guard;
  readonly answer?: (call: Call) => Reply | Promise<Reply> | undefined;
}

const rulesOf = (...rules: RouteRule[]) => table(rules, { a: [], b: [] });

function setup({ stored = {}, result, subset = "gold", answer, guard }: World = {}) {
  const clock = createFakeClock();
  const session = createEnforcer();
  let version = 1;
  const enforce = (...rules: RouteRule[]) =>
    session.enforce(snapshot(rulesOf(...rules), { subset, guard, version: version++, digest: `d${version}` }));
  enforce(objects("gold", "tier=gold", FOOS));
  const upstream = fakeUpstream((call) => {
    const own = answer?.(call);
    if (own !== undefined) return own;
    const { info } = call;
    if (info.kind !== "resource" || info.verb === "create" || info.verb === "deletecollection") return jsonReply(foo("x", GOLD));
    if (!Object.hasOwn(stored, info.name) && info.verb !== "patch") return jsonReply(createStatus("NotFound", "gone"), 404);
    return jsonReply(foo(info.name, info.verb === "get" ? stored[info.name] : (result ?? stored[info.name])));
  });
  const registry = createRegistry("proxy", "test");
  const layer = isolate(
    isolateDeps({ session, clock, registry, random: () => 0, discovery: { scopeOf: async () => "namespaced" } }),
  );
  const handler = layer(upstream);
  const send = (method: string, target: string, options?: CallOptions, call = callOf(method, target, options)) => handler(call);
  const refusal = async (method: string, target: string, options?: CallOptions) => {
    const error: unknown = await send(method, target, options).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    if (!(error instanceof StatusError)) throw new Error(`not refused: ${String(error)}`);
    return error.status;
  };
  const sent = () => upstream.calls.map(({ method, target }) => `${method} ${decodeURIComponent(target)}`);
  return { clock, session, enforce, upstream, send, refusal, sent };
}

it("what the proxy asks before a write names the client's call, so that limits decide about that call alone", async () => {
  const { send, upstream, sent } = setup({ stored: { x: GOLD } });
  const call = callOf("DELETE", `${IN_A}/x`);
  await send(call.method, call.target, {}, call);
  expect(sent()).toEqual([`GET ${IN_A}/x`, `DELETE ${IN_A}/x`]);
  for (const { record } of upstream.calls) expect(clientsRecord(record)).toBe(call.record);
});

describe("get of one object", () => {
  it("passes the reply as it is where its labels are ours", async () => {
    const { send } = setup({ stored: { x: GOLD } });
    expect(JSON.parse(await textOf(await send("GET", `${IN_A}/x`)))).toEqual(foo("x", GOLD));
  });
  it("says of another one's what the API server says of none", async () => {
    for (const labels of [{ tier: "silver" }, {}, undefined]) {
      const { refusal } = setup({ stored: { x: labels } });
      expect(await refusal("GET", `${IN_A}/x`)).toEqual({
        kind: "Status",
        apiVersion: "v1",
        metadata: {},
        status: "Failure",
        message: 'foos.demo.io "x" not found',
        reason: "NotFound",
        details: { name: "x", group: "demo.io", kind: "foos" },
        code: 404,
      });
    }
  });
  it("gives the default subset what no selector matches", async () => {
    const { send } = setup({ stored: { x: { tier: "silver" }, y: undefined }, subset: "" });
    expect(await namesOf(await send("GET", `${IN_A}/x`))).toEqual(["x"]);
    expect(await namesOf(await send("GET", `${IN_A}/y`))).toEqual(["y"]);
    expect((await setup({ stored: { x: GOLD }, subset: "" }).refusal("GET", `${IN_A}/x`)).code).toBe(404);
  });
  it("judges the row of a Table, and asks for its metadata", async () => {
    const row = (labels: Labels) => ({ cells: ["x"], object: { metadata: { name: "x", namespace: "a", labels } } });
    const tableOf = (labels: Labels) =>
      jsonReply({ kind: "Table", apiVersion: "meta.k8s.io/v1", columnDefinitions: [], rows: [row(labels)] });
    const accept = { headers: { accept: "application/json;as=Table;g=meta.k8s.io;v=v1" } };
    const own = setup({ answer: () => tableOf(GOLD) });
    expect((await own.send("GET", `${IN_A}/x?includeObject=None`, accept)).status).toBe(200);
    expect(own.sent()).toEqual([`GET ${IN_A}/x?includeObject=Metadata`]);
    expect((await setup({ answer: () => tableOf({}) }).refusal("GET", `${IN_A}/x`, accept)).code).toBe(404);
  });
  it("never passes what it cannot read", async () => {
    const cbor: Reply = { status: 200, headers: { "content-type": "application/cbor" }, body: Buffer.from("x") };
    expect((await setup({ answer: () => cbor }).refusal("GET", `${IN_A}/x`)).code).toBe(406);
    const twice = { status: 200, headers: { "content-type": "application/json" } };
    const decoy = Buffer.from('{"metadata":{"name":"x","labels":{"tier":"gold"},"labels":{}}}');
    await expect(setup({ answer: () => ({ ...twice, body: decoy }) }).send("GET", `${IN_A}/x`)).rejects.toThrow("certainty");
  });
  it("of a subresource, and a HEAD, look at the object first", async () => {
    const { send, sent } = setup({ stored: { x: GOLD } });
    await send("GET", `${IN_A}/x/scale?a=b`);
    await send("HEAD", `${IN_A}/x`);
    expect(sent()).toEqual([`GET ${IN_A}/x`, `GET ${IN_A}/x/scale?a=b`, `GET ${IN_A}/x`, `HEAD ${IN_A}/x`]);
    expect((await setup({ stored: { x: {} } }).refusal("GET", `${IN_A}/x/log`)).code).toBe(403);
  });
});

describe("create", () => {
  it("needs labels that are ours, with a generated name too", async () => {
    const { send, refusal, sent } = setup();
    await send("POST", IN_A, body(GOLD));
    expect(sent()).toEqual([`POST ${IN_A}`]);
    expect(await refusal("POST", IN_A, body({ tier: "silver" }))).toMatchObject({
      code: 403,
      message: "ctrlmesh: create foos.demo.io: the object in the body, by its labels, belongs to the default subset",
    });
    const generated = { metadata: { generateName: "x-" } };
    expect((await refusal("POST", IN_A, json(generated, "json"))).code).toBe(403);
    expect((await setup({ subset: "" }).refusal("POST", IN_A, body(GOLD))).message).toContain('subset "gold"');
  });
  it("of what cannot be read is refused", async () => {
    const { refusal } = setup();
    expect((await refusal("POST", IN_A, body(GOLD, "application/yaml"))).code).toBe(415);
    const twice = { headers: {}, body: '{"metadata":{"labels":{"tier":"x"}},"metadata":{"labels":{"tier":"gold"}}}' };
    expect((await refusal("POST", IN_A, twice)).code).toBe(400);
    expect((await refusal("POST", IN_A, { headers: {}, body: `{"a":"${"x".repeat(3 << 20)}"}` })).code).toBe(413);
  });
});

describe("update", () => {
  it("needs the stored object and the new one to be ours", async () => {
    const { send, sent, upstream } = setup({ stored: { x: GOLD } });
    await send("PUT", `${IN_A}/x`, body(GOLD));
    expect(sent()).toEqual([`GET ${IN_A}/x`, `PUT ${IN_A}/x`]);
    expect(upstream.calls[0]?.headers.accept).toContain("as=PartialObjectMetadata");
    expect((await setup({ stored: { x: {} } }).refusal("PUT", `${IN_A}/x`, body(GOLD))).message).toContain(
      "the object, by its labels, belongs to the default subset",
    );
    const away = setup({ stored: { x: GOLD } });
    expect((await away.refusal("PUT", `${IN_A}/x`, body({}))).message).toContain("the object in the body, by its labels,");
    expect(away.sent()).toEqual([]);
  });
  it("of what is not there is the API server's to answer: some kinds are created so", async () => {
    const { send, sent } = setup();
    await send("PUT", `${IN_A}/x`, body(GOLD));
    expect(sent()).toEqual([`GET ${IN_A}/x`, `PUT ${IN_A}/x`]);
  });
  it("of the status may come without labels: the API server is asked what it would become", async () => {
    const { send, sent } = setup({ stored: { x: GOLD } });
    await send("PUT", `${IN_A}/x/status`, body(undefined));
    expect(sent()).toEqual([`GET ${IN_A}/x`, `PUT ${IN_A}/x/status?dryRun=All`, `PUT ${IN_A}/x/status`]);
  });
  it("of a subresource that is not the object, such as its scale, needs the object only", async () => {
    const { send, sent } = setup({ stored: { x: GOLD } });
    await send("PUT", `${IN_A}/x/scale`, body(undefined));
    await send("PUT", `${IN_A}/x/finalize`, body(GOLD));
    expect(sent()).toEqual([`GET ${IN_A}/x`, `PUT ${IN_A}/x/scale`, `GET ${IN_A}/x`, `PUT ${IN_A}/x/finalize`]);
  });
  it("goes upstream as its caller", async () => {
    const { send, upstream } = setup({ stored: { x: GOLD } });
    const headers = { authorization: "Bearer t", "impersonate-user": "u", "content-type": "application/json" };
    await send("PUT", `${IN_A}/x`, { ...body(GOLD), headers });
    expect(upstream.calls[0]?.headers).toMatchObject({ authorization: "Bearer t", "impersonate-user": "u" });
    expect(upstream.calls[0]?.headers["content-type"]).toBeUndefined();
  });
});

describe("patch", () => {
  const MERGE = "merge-patch+json";

  it("of other fields needs only the stored object to be ours", async () => {
    const { send, sent } = setup({ stored: { x: GOLD } });
    await send("PATCH", `${IN_A}/x`, json({ spec: {} }, MERGE));
    expect(sent()).toEqual([`GET ${IN_A}/x`, `PATCH ${IN_A}/x`]);
    expect((await setup({ stored: { x: {} } }).refusal("PATCH", `${IN_A}/x`, json({ spec: {} }, MERGE))).code).toBe(403);
  });
  it("of labels is tried first, and refused if the object would leave", async () => {
    const patch = json({ metadata: { labels: { a: "b" } } }, MERGE);
    const stays = setup({ stored: { x: GOLD }, result: { ...GOLD, a: "b" } });
    await stays.send("PATCH", `${IN_A}/x?fieldManager=m`, patch);
    expect(stays.sent()).toEqual([
      `GET ${IN_A}/x`,
      `PATCH ${IN_A}/x?fieldManager=m&dryRun=All`,
      `PATCH ${IN_A}/x?fieldManager=m`,
    ]);
    const leaves = setup({ stored: { x: GOLD }, result: { tier: "silver" } });
    expect((await leaves.refusal("PATCH", `${IN_A}/x`, patch)).message).toContain("what it would become, by its labels,");
    expect(leaves.sent()).toHaveLength(2);
  });
  it("that is an apply creates what is not there, if that would be ours", async () => {
    const own = setup({ result: GOLD });
    await own.send("PATCH", `${IN_A}/x`, json(foo("x", GOLD), "apply-patch+yaml"));
    expect(own.sent()).toHaveLength(3);
    const foreign = setup({ result: {} });
    expect((await foreign.refusal("PATCH", `${IN_A}/x`, json(foo("x", {}), "apply-patch+yaml"))).code).toBe(403);
  });
  it("of what is not there, and one that the API server refuses, get its answer", async () => {
    const { send, sent } = setup();
    expect((await send("PATCH", `${IN_A}/x`, json({}, MERGE))).status).toBe(404);
    expect(sent()).toEqual([`GET ${IN_A}/x`]);
    const invalid = setup({
      stored: { x: GOLD },
      answer: ({ method }) => (method === "PATCH" ? jsonReply(createStatus("Invalid", "no"), 422) : undefined),
    });
    expect((await invalid.send("PATCH", `${IN_A}/x`, json({ metadata: { labels: {} } }, MERGE))).status).toBe(422);
    expect(invalid.sent()).toHaveLength(2);
  });
});

describe("delete", () => {
  it("needs the stored object to be ours", async () => {
    const own = setup({ stored: { x: GOLD } });
    await own.send("DELETE", `${IN_A}/x`);
    expect(own.sent()).toEqual([`GET ${IN_A}/x`, `DELETE ${IN_A}/x`]);
    const foreign = setup({ stored: { x: {} } });
    expect((await foreign.refusal("DELETE", `${IN_A}/x`)).code).toBe(403);
    expect(foreign.sent()).toEqual([`GET ${IN_A}/x`]);
    expect((await setup().send("DELETE", `${IN_A}/x`)).status).toBe(404);
  });
  it("of a subresource, as an eviction or an exec, too", async () => {
    const { send, sent } = setup({ stored: { x: GOLD } });
    await send("POST", `${IN_A}/x/eviction`, { body: "{}" });
    expect(sent()).toEqual([`GET ${IN_A}/x`, `POST ${IN_A}/x/eviction`]);
    expect((await setup({ stored: { x: {} } }).refusal("POST", `${IN_A}/x/exec`)).code).toBe(403);
  });
  it("that the caller may not look at gets the API server's refusal", async () => {
    const { send } = setup({ answer: () => jsonReply(createStatus("Forbidden", "cannot get"), 403) });
    expect((await send("DELETE", `${IN_A}/x`)).status).toBe(403);
  });
  it("of a collection is narrowed by labels, in a namespace and in all", async () => {
    const { send, sent } = setup();
    await send("DELETE", `${IN_A}?labelSelector=a`);
    await send("DELETE", ALL);
    expect(sent()).toEqual([`DELETE ${IN_A}?labelSelector=a,tier=gold`, `DELETE ${ALL}?labelSelector=tier=gold`]);
  });
  it("of a collection over all namespaces is refused where a limit is on namespaces", async () => {
    const { refusal, enforce } = setup();
    enforce(limit(), objects("gold", "tier=gold", FOOS));
    expect((await refusal("DELETE", ALL)).message).toContain("delete by namespace instead");
  });
});

it("a write to another subset's object passes with a warning where the guard only warns, and so does a get of it", async () => {
  const warned = () => setup({ stored: { x: {} }, result: {}, guard: "Warn" });
  const calls = [
    ["GET", `${IN_A}/x`, {}, "the object"],
    ["POST", IN_A, body({}), "the object in the body"],
    ["PUT", `${IN_A}/x`, body(GOLD), "the object"],
    ["PATCH", `${IN_A}/x`, json({ metadata: { labels: {} } }, "merge-patch+json"), "the object"],
    ["DELETE", `${IN_A}/x`, {}, "the object"],
    ["POST", `${IN_A}/x/eviction`, { body: "{}" }, "the object"],
  ] as const;
  for (const [method, target, options, which] of calls) {
    const { send, sent } = warned();
    const { headers } = await send(method, target, options);
    expect(headers.warning).toEqual([expect.stringContaining(`${which}, by its labels, belongs to the default subset`)]);
    expect(sent().at(-1)).toBe(`${method} ${target}`);
  }
});

describe("lists and watches", () => {
  it("of one namespace and of all ask for our labels, and drop what comes all the same", async () => {
    const items = [foo("x", GOLD), foo("y", {}), { metadata: { name: "z", namespace: "a" } }];
    const list = () => jsonReply({ kind: "FooList", apiVersion: "demo.io/v1", metadata: { resourceVersion: "7" }, items });
    const { send, sent } = setup({ answer: list });
    expect(await namesOf(await send("GET", `${IN_A}?labelSelector=a`))).toEqual(["x"]);
    expect(await namesOf(await send("GET", ALL))).toEqual(["x"]);
    expect(sent()).toEqual([`GET ${IN_A}?labelSelector=a,tier=gold`, `GET ${ALL}?labelSelector=tier=gold`]);
  });
  it("of a subset without a selector hold nothing", async () => {
    const { send, sent } = setup({ subset: "other", answer: () => jsonReply({ kind: "FooList", items: [foo("x", GOLD)] }) });
    expect(await namesOf(await send("GET", ALL))).toEqual([]);
    expect(sent()[0]).toContain("ctrlmesh.kruise.io/nothing,!ctrlmesh.kruise.io/nothing");
  });
});

describe("while the rules change", () => {
  it("everything of the resource waits for the new ones", async () => {
    const { refusal, enforce } = setup({ stored: { x: GOLD } });
    enforce(objects("gold", "tier=gold", FOOS), fence(FOOS));
    for (const [method, path] of [
      ["DELETE", `${IN_A}/x`],
      ["GET", `${IN_A}/x`],
      ["GET", ALL],
      ["GET", `${IN_A}?watch=1`],
    ] as const) {
      const status = await refusal(method, path);
      expect([path, status.code, status.details?.retryAfterSeconds]).toEqual([path, 503, 1]);
    }
  });
  it("a list that is on its way is not shortened to what is left of it", async () => {
    const list = Promise.withResolvers<Reply>();
    const first = setup({ answer: () => list.promise });
    const early = first.refusal("GET", ALL);
    await first.clock.flush();
    first.enforce(objects("gold", "tier=gold", FOOS), fence(FOOS));
    list.resolve(jsonReply({ kind: "FooList", items: [foo("x", GOLD)] }));
    const { code, message, details } = await early;
    expect([code, message]).toEqual([503, "ctrlmesh: a handover runs: the resource moves between subsets; try again in 1 s"]);
    expect(details).toMatchObject({ causes: [{ reason: "HandoverRunning" }], retryAfterSeconds: 1 });
    const second = setup({ answer: () => jsonReply({ kind: "FooList", items: [foo("x", GOLD)] }) });
    const reply = await second.send("GET", ALL);
    second.enforce(objects("gold", "tier=gold", FOOS), fence(FOOS));
    await expect(textOf(reply)).rejects.toThrow("moves between subsets"); // its body breaks off
  });
  it("a watch that is on its way shows nothing more, no bookmark either, and ends", async () => {
    const source = scriptedSource();
    const { send, enforce, clock } = setup({
      answer: () => ({ status: 200, headers: { "content-type": "application/json" }, body: source }),
    });
    const sink = recordingSink();
    const { body: stream } = await send("GET", `${ALL}?watch=1`);
    if (stream === null || stream instanceof Uint8Array) throw new Error("no stream");
    stream.open(sink);
    const event = (type: string, object: object) => source.write(Buffer.from(`${JSON.stringify({ type, object })}\n`));
    event("ADDED", foo("x", GOLD));
    enforce(objects("gold", "tier=gold", FOOS), fence(FOOS));
    event("MODIFIED", foo("x", GOLD));
    event("BOOKMARK", { metadata: { resourceVersion: "9" } });
    await clock.advance(1_000);
    expect(sink.text.match(/"type":"\w+"/g)).toEqual(['"type":"ADDED"', '"type":"ERROR"']);
  });
  it("a fence on everything, where little is known, shows nothing, as fenced namespaces do", async () => {
    const { send, enforce } = setup({ answer: () => jsonReply({ kind: "FooList", items: [foo("x", GOLD)] }) });
    enforce(objects("gold", "tier=gold", FOOS), unreportedFence());
    expect(await namesOf(await send("GET", ALL))).toEqual([]);
  });
  it("a write that was judged by other labels is waited for, from its first question on", async () => {
    const stored = Promise.withResolvers<Reply>();
    const { send, enforce, session } = setup({ answer: (call) => (call.method === "GET" ? stored.promise : undefined) });
    const write = send("DELETE", `${IN_A}/x`);
    let settled = false;
    enforce(objects("gold", "tier in (gold,silver)", FOOS));
    session.whenDrained(() => {
      settled = true;
    });
    expect(settled).toBe(false);
    stored.resolve(jsonReply(foo("x", GOLD)));
    await write;
    expect(settled).toBe(true);
  });
});

describe("pods that labels divide, through their bindings", () => {
  const PODS = group("", "pods");
  const inA = "/api/v1/namespaces/a";
  const bindingOf = (labels?: Labels): CallOptions => ({
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      kind: "Binding",
      metadata: { name: "p", ...(labels === undefined ? {} : { labels }) },
      target: { name: "n1" },
    }),
  });
  const divided = (stored: Labels, owner = "gold") => {
    const world = setup({ stored: { p: stored }, subset: owner });
    world.enforce(objects("gold", "tier=gold", PODS));
    return world;
  };

  it("are not bound by a request that names them in its body alone", async () => {
    for (const owner of ["gold", ""]) {
      const world = divided({ tier: "silver" }, owner);
      expect((await world.refusal("POST", `${inA}/bindings`, bindingOf())).message).toContain("create pods/binding instead");
      expect(world.upstream.calls).toEqual([]);
    }
  });
  it("are bound where they stay ours, and are not given away by the labels of a Binding", async () => {
    const world = divided(GOLD);
    expect((await world.send("POST", `${inA}/pods/p/binding`, bindingOf())).status).toBe(200);
    expect((await world.send("POST", `${inA}/pods/p/binding`, bindingOf({ zone: "z" }))).status).toBe(200);
    expect(world.sent()).toContain(`POST ${inA}/pods/p/binding`);
    const before = world.sent().length;
    expect((await world.refusal("POST", `${inA}/pods/p/binding`, bindingOf({ tier: "silver" }))).code).toBe(403);
    expect(world.sent().slice(before)).toEqual([`GET ${inA}/pods/p`]);
    expect((await divided({ tier: "silver" }).refusal("POST", `${inA}/pods/p/binding`, bindingOf(GOLD))).code).toBe(403);
  });
  it("are bound by such a request where namespaces alone divide them, in our own", async () => {
    const world = setup();
    world.enforce(subset("gold", PODS));
    await world.clock.advance(500); // a refusal right after a change waits until informers know of the change
    expect((await world.refusal("POST", `${inA}/bindings`, bindingOf())).code).toBe(403);
    world.session.enforce(snapshot(table([subset("gold", PODS)], { a: [0] }), { subset: "gold", version: 9, digest: "d9" }));
    expect((await world.send("POST", `${inA}/bindings`, bindingOf())).status).toBe(200);
  });
});
