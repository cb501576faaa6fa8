import { describe, expect, it } from "vitest";
import {
  CONFIGMAPS,
  echo,
  jsonBody as json,
  LEASES,
  lease,
  setupElection as setup,
} from "../../../../test/support/election-setup.ts";
import { type CallOptions, jsonReply, namesOf, textOf } from "../../../../test/support/layer-call.ts";
import { table } from "../../../../test/support/route-table.ts";
import { recordingSink, scriptedSource } from "../../../../test/support/scripted-body.ts";
import { routes } from "../../../../test/support/test-routes.ts";
import { ENVELOPE_PREFIX, encodeBytes, encodeString } from "../../../kube/codec/protobuf/wire.ts";
import { createStatus } from "../../../kube/status.ts";

describe("the subset's own lock", () => {
  it.each(["GET", "DELETE"])("%s is renamed in the path, and the answer has the operator's name", async (method) => {
    const { send, sent } = setup();
    const reply = await send(method, `${LEASES}/shop-lock?timeout=5s`);
    expect(sent()?.target).toBe(`${LEASES}/shop-lock---blue?timeout=5s`);
    expect(sent()?.info.segments.at(-1)).toBe("shop-lock---blue");
    expect(sent()?.record.lock).toBe(true);
    expect(await namesOf(reply)).toEqual(["shop-lock"]);
    expect(reply.headers["content-length"]).toBe(String((reply.body as Uint8Array).length));
  });

  it("with the name of its namespace leaves the namespace alone", async () => {
    const { send, sent } = setup({ lockName: "shop" });
    await send("GET", `${LEASES}/shop`);
    expect(sent()?.target).toBe(`${LEASES}/shop---blue`);
  });

  it.each(["PUT", "PATCH"])("%s is renamed in the body too, and no other byte changes", async (method) => {
    const { send, sent } = setup();
    const body = '{ "metadata": {"name":"shop-lock","generation":9007199254740993}, "spec": {"holderIdentity":"shop-lock"} }';
    const reply = await send(method, `${LEASES}/shop-lock`, {
      headers: { "content-type": "application/merge-patch+json" },
      body,
    });
    expect(Buffer.from(sent()?.body as Uint8Array).toString()).toBe(
      body.replace('"name":"shop-lock"', '"name":"shop-lock---blue"'),
    );
    expect(await textOf(reply)).toBe(body);
  });

  it("is created under its own name", async () => {
    const { send, sentBody, sent } = setup();
    const reply = await send("POST", LEASES, json(lease("shop-lock")));
    expect(sentBody().metadata.name).toBe("shop-lock---blue");
    expect(sent()?.record.lock).toBe(true);
    expect(await namesOf(reply)).toEqual(["shop-lock"]);
  });

  it("is translated in protobuf as well", async () => {
    const { send, sent } = setup();
    const body = protobufLease("shop-lock", "pod-1");
    const reply = await send("PUT", `${LEASES}/shop-lock`, {
      headers: { "content-type": "application/vnd.kubernetes.protobuf" },
      body,
    });
    expect(sent()?.body).toEqual(protobufLease("shop-lock---blue", "pod-1"));
    expect(reply.body).toEqual(protobufLease("shop-lock", "pod-1"));
  });

  it("is translated in the server's errors", async () => {
    const { send } = setup({}, () =>
      jsonReply(createStatus("NotFound", 'leases "shop-lock---blue" not found', { name: "shop-lock---blue" }), 404),
    );
    const status = JSON.parse(await textOf(await send("GET", `${LEASES}/shop-lock`)));
    expect(status.message).toBe('leases "shop-lock" not found');
    expect(status.details.name).toBe("shop-lock");
  });

  it("is translated in a refusal by RBAC, which also has the name that a Role must have", async () => {
    const denied = 'leases.coordination.k8s.io "shop-lock---blue" is forbidden: User "op" cannot get resource "leases"';
    const { send } = setup({}, () => jsonReply(createStatus("Forbidden", denied, { name: "shop-lock---blue" }), 403));
    const status = JSON.parse(await textOf(await send("GET", `${LEASES}/shop-lock`)));
    expect(status.message).toBe(
      'leases.coordination.k8s.io "shop-lock" (ctrlmesh: upstream "shop-lock---blue") is forbidden: User "op" cannot get resource "leases"',
    );
    expect(status.details.name).toBe("shop-lock");
  });

  it("keeps its name in the default subset, and counts as lock traffic", async () => {
    const { send, sent } = setup({ subset: "" });
    await send("PUT", `${LEASES}/shop-lock`, json(lease("shop-lock")));
    expect(sent()?.target).toBe(`${LEASES}/shop-lock`);
    expect(sent()?.record.lock).toBe(true);
  });

  it("in an unreadable body is refused, upon which client-go sends JSON; in the default subset it passes", async () => {
    const cbor = { headers: { "content-type": "application/cbor" }, body: "x" };
    const blue = setup();
    expect((await blue.refusal("PUT", `${LEASES}/shop-lock`, cbor)).code).toBe(415);
    expect((await blue.refusal("POST", LEASES, cbor)).code).toBe(415);
    expect(blue.upstream.calls).toEqual([]);
    const defaultSubset = setup({ subset: "" }, () => jsonReply(lease("shop-lock")));
    expect((await defaultSubset.send("PUT", `${LEASES}/shop-lock`, cbor)).status).toBe(200);
    expect((await defaultSubset.refusal("POST", LEASES, cbor)).code).toBe(415);
    const only = setup({ subset: "", table: table([], {}) }, () => jsonReply(lease("shop-lock")));
    expect((await only.send("POST", LEASES, cbor)).status).toBe(200);
    expect(only.sent()?.headers.accept).toBeUndefined();
  });

  it.each(["v1", "v1beta1", "v1alpha2"])("is a lock in coordination.k8s.io/%s", async (version) => {
    const { send, sent } = setup();
    await send("GET", `/apis/coordination.k8s.io/${version}/namespaces/shop/leases/shop-lock`);
    expect(sent()?.target).toBe(`/apis/coordination.k8s.io/${version}/namespaces/shop/leases/shop-lock---blue`);
  });

  it("is marked before it is sent, by name, by selector and in a create, so that it has its own connections", async () => {
    const { send, upstream } = setup();
    const marks: boolean[] = [];
    upstream.onCall = (call) => marks.push(call.record.lock);
    await send("POST", LEASES, json(lease("shop-lock")));
    await send("PATCH", `${LEASES}/shop-lock`, json({ spec: {} }));
    for (const query of ["", "&watch=true"]) {
      await send("GET", `${LEASES}?fieldSelector=metadata.name%3Dshop-lock${query}`);
    }
    expect(marks).toEqual([true, true, true, true]);
  });

  it("keeps one name for the whole request, even if the pod comes into another subset meanwhile", async () => {
    const pending = Promise.withResolvers<void>();
    const { send, sent, enforcer, leader } = setup({}, async (call) => {
      await pending.promise;
      return echo(call);
    });
    const reply = send("PUT", `${LEASES}/shop-lock`, json(lease("shop-lock")));
    await Promise.resolve();
    enforcer.enforce(routes(2, {}, { subset: "green" }));
    pending.resolve();
    expect(await namesOf(await reply)).toEqual(["shop-lock"]);
    expect(sent()?.target).toBe(`${LEASES}/shop-lock---blue`);
    expect(leader).not.toContain(true); // nothing is known of the present lock
    await send("GET", `${LEASES}/shop-lock`);
    expect(sent()?.target).toBe(`${LEASES}/shop-lock---green`);
  });

  it("is not touched in an event about it, nor in an owner reference", async () => {
    const { send, sentText, sent } = setup();
    const event = JSON.stringify({ metadata: { name: "shop-lock.1" }, involvedObject: { kind: "Lease", name: "shop-lock" } });
    await send("POST", "/api/v1/namespaces/shop/events", { headers: { "content-type": "application/json" }, body: event });
    expect([sentText(), sent()?.record.lock]).toEqual([event, false]);
    const owned = { metadata: { name: "x", ownerReferences: [{ kind: "Lease", name: "shop-lock", uid: "u" }] } };
    await send("POST", CONFIGMAPS, json(owned));
    expect(sentText()).toBe(JSON.stringify(owned));
  });

  it("passes as bytes when a create turns out to be for something else", async () => {
    const { send, sent } = setup();
    await send("POST", CONFIGMAPS, json({ metadata: { name: "settings" } }));
    expect(sent()?.record.lock).toBe(false);
    expect(Buffer.from(sent()?.body as Uint8Array).toString()).toBe('{"metadata":{"name":"settings"}}');
  });

  it("in an answer over the bound is an error that says so", async () => {
    const { refusal } = setup({}, () => jsonReply({ filler: "x".repeat(4 * 1024 * 1024) }));
    const status = await refusal("GET", `${LEASES}/shop-lock`);
    expect([status.code, status.message]).toEqual([500, expect.stringContaining("over 3145728 bytes")]);
  });

  it("with a body over the bound is refused", async () => {
    const { refusal } = setup();
    const body = JSON.stringify({ metadata: { name: "shop-lock" }, filler: "x".repeat(1024 * 1024) });
    expect((await refusal("POST", LEASES, { headers: { "content-type": "application/json" }, body })).code).toBe(413);
  });

  it("is no lock in another namespace or of another kind", async () => {
    const { send, sent } = setup();
    await send("GET", "/apis/coordination.k8s.io/v1/namespaces/other/leases/shop-lock");
    expect(sent()?.target).toContain("other/leases/shop-lock");
    await send("GET", "/api/v1/namespaces/shop/secrets/shop-lock");
    expect(sent()?.target).toContain("secrets/shop-lock");
    expect(sent()?.record.lock).toBe(false);
  });
});

describe("another subset's lock", () => {
  it.each(["GET", "PUT", "PATCH", "DELETE"])("cannot be reached by name (%s)", async (method) => {
    const { refusal, upstream } = setup();
    expect((await refusal(method, `${LEASES}/shop-lock---green`)).code).toBe(403);
    expect(upstream.calls).toEqual([]);
  });

  it("cannot be reached by an escaped name", async () => {
    const { refusal } = setup();
    expect((await refusal("GET", `${LEASES}/shop-lock%2D%2D-green`)).code).toBe(403);
  });

  it("cannot be the own lock under its name upstream, since the operator knows one name only", async () => {
    const { refusal } = setup();
    expect((await refusal("GET", `${LEASES}/shop-lock---blue`)).message).toContain("the operator's own lock name");
    expect((await refusal("POST", LEASES, json(lease("shop-lock---blue")))).code).toBe(403);
  });

  it("cannot be created", async () => {
    const { refusal } = setup();
    expect((await refusal("POST", LEASES, json(lease("shop-lock---green")))).code).toBe(403);
  });

  it("cannot come into a create by a second name", async () => {
    const { refusal } = setup();
    const body = '{"metadata":{"name":"harmless","name":"shop-lock---green"}}';
    expect((await refusal("POST", LEASES, { headers: { "content-type": "application/json" }, body })).code).toBe(400);
  });

  it("cannot be selected", async () => {
    const { refusal } = setup();
    expect((await refusal("GET", `${LEASES}?fieldSelector=metadata.name%3Dshop-lock---green`)).code).toBe(403);
  });

  it("cannot be deleted by a deletecollection", async () => {
    const { refusal, send, sent } = setup({ table: { ...routes(1, {}).table } });
    expect((await refusal("DELETE", `${LEASES}?labelSelector=x`)).code).toBe(403);
    await send("DELETE", `${CONFIGMAPS}?labelSelector=x`);
    expect(sent()?.info.query.get("fieldSelector")).toBe("metadata.name!=shop-lock");
  });

  it("cannot be deleted by a deletecollection of leases while the app has no subsets, since former pods may still lead", async () => {
    const { refusal, send, sent } = setup({ subset: "", table: table([], {}) });
    expect((await refusal("DELETE", LEASES)).code).toBe(403);
    expect((await refusal("DELETE", `${LEASES}?labelSelector=x`)).code).toBe(403);
    await send("DELETE", `${CONFIGMAPS}?labelSelector=x`);
    expect(sent()?.target).toBe(`${CONFIGMAPS}?labelSelector=x`);
    const unnamed = setup({ subset: "", lockName: "", table: table([], {}) });
    expect((await unnamed.send("DELETE", LEASES)).status).toBe(200);
  });

  it("is not seen in a watch that began before the app had subsets", async () => {
    const all = LEASES.replace("/namespaces/shop", "");
    for (const target of [`${LEASES}?watch=true`, `${all}?watch=true`]) {
      const source = scriptedSource();
      const answer = () => ({ status: 200, headers: { "content-type": "application/json" }, body: source });
      const { send, enforcer } = setup({ subset: "", table: table([], {}) }, answer);
      const { body } = await send("GET", target);
      const sink = recordingSink();
      if (body === null || body instanceof Uint8Array) throw new Error("no source");
      body.open(sink);
      source.write("whatever");
      enforcer.enforce(routes(2, {}, { subset: "", table: table([], {}) }));
      expect([sink.text, sink.state]).toEqual(["whatever", "open"]);
      enforcer.enforce(routes(3, { blue: ["team"] }, { subset: "" }));
      expect(sink.state, target).toBe("ended");
    }
  });

  it("is not seen in a list, where the own one has the operator's name", async () => {
    const items = ["other", "shop-lock", "shop-lock---blue", "shop-lock---green"].map((name) => lease(name));
    const list = { kind: "LeaseList", apiVersion: "coordination.k8s.io/v1", metadata: { resourceVersion: "1" }, items };
    const blue = setup({}, () => jsonReply(list));
    expect(await namesOf(await blue.send("GET", LEASES))).toEqual(["other", "shop-lock"]);
    expect(blue.sent()?.record.lock).toBe(false);
    const defaultSubset = setup({ subset: "" }, () => jsonReply(list));
    expect(await namesOf(await defaultSubset.send("GET", LEASES))).toEqual(["other", "shop-lock"]);
  });

  it("is not seen in a watch, where the own one has the operator's name", async () => {
    const source = scriptedSource();
    const { send, enforcer } = setup({}, () => ({ status: 200, headers: { "content-type": "application/json" }, body: source }));
    const { body } = await send("GET", `${LEASES}?watch=true`);
    const sink = recordingSink();
    if (body === null || body instanceof Uint8Array) throw new Error("no source");
    body.open(sink);
    for (const name of ["shop-lock", "shop-lock---blue", "shop-lock---green"]) {
      source.write(`${JSON.stringify({ type: "ADDED", object: lease(name) })}\n`);
    }
    expect(sink.text).toBe(`${JSON.stringify({ type: "ADDED", object: lease("shop-lock") })}\n`);
    enforcer.enforce(routes(2, {}, { subset: "green" }));
    expect(sink.state).toBe("ended");
    expect(source.cancelled).toBe(true);
  });
});

it("a watch shows a Table's columns even if its first event is another subset's lock", async () => {
  const source = scriptedSource();
  const { send } = setup({}, () => ({ status: 200, headers: { "content-type": "application/json" }, body: source }));
  const { body } = await send("GET", `${LEASES}?watch=true`);
  const sink = recordingSink();
  if (body === null || body instanceof Uint8Array) throw new Error("no source");
  body.open(sink);
  const tableEvent = (rows: string[], columns: unknown) =>
    `${JSON.stringify({ type: "ADDED", object: { kind: "Table", apiVersion: "meta.k8s.io/v1", columnDefinitions: columns, rows: rows.map((name) => ({ object: lease(name) })) } })}\n`;
  source.write(tableEvent(["shop-lock---green"], [{ name: "Name" }]));
  source.write(tableEvent(["shop-lock---green"], null));
  source.write(tableEvent(["shop-lock---blue"], null));
  expect(sink.text).toBe(tableEvent([], [{ name: "Name" }]) + tableEvent(["shop-lock"], null));
});

it("the lock is renamed in field selectors, and their other terms stay", async () => {
  const list = { kind: "LeaseList", apiVersion: "v1", metadata: {}, items: [lease("shop-lock---blue")] };
  const { send, sent } = setup({}, () => jsonReply(list));
  const reply = await send("GET", `${LEASES}?fieldSelector=metadata.name%3Dshop-lock,metadata.namespace%3Dshop-lock`);
  expect(sent()?.info.query.get("fieldSelector")).toBe("metadata.name=shop-lock---blue,metadata.namespace=shop-lock");
  expect(sent()?.record.lock).toBe(true);
  expect(await namesOf(reply)).toEqual(["shop-lock"]);
});

it("the selector goes on as it was read, in the default subset too", async () => {
  const { send, sent } = setup({ subset: "" }, () => jsonReply({ kind: "LeaseList", apiVersion: "v1", metadata: {}, items: [] }));
  await send("GET", `${LEASES}?fieldSelector=+metadata.name==shop-lock,,`);
  expect(sent()?.target).toBe(`${LEASES}?fieldSelector=metadata.name%3Dshop-lock`);
});

it("a server that reads the selector differently shows no other object as the lock", async () => {
  const items = ["shop-lock", "shop-lock---green", "other-subset"].map((name) => lease(name));
  const list = { kind: "ConfigMapList", apiVersion: "v1", metadata: {}, items };
  const { send } = setup({ subset: "" }, () => jsonReply(list));
  for (const method of ["GET", "DELETE"]) {
    const reply = await send(method, `${CONFIGMAPS}?fieldSelector=metadata.name%3Dshop-lock`);
    expect(await namesOf(reply)).toEqual(["shop-lock"]);
  }
});

it("a list of a namespace's configmaps is not held, whatever its size", async () => {
  const source = scriptedSource();
  const { send } = setup({}, () => ({ status: 200, headers: { "content-type": "application/json" }, body: source }));
  const { body } = await send("GET", CONFIGMAPS);
  if (body === null || body instanceof Uint8Array) throw new Error("no source");
  const sink = recordingSink();
  body.open(sink);
  source.write('{"kind":"ConfigMapList","apiVersion":"v1","metadata":{},"items":[');
  const first = JSON.stringify({ metadata: { name: "a", namespace: "shop" } });
  source.write(`${first},`);
  expect(sink.text).toContain(first);
  source.write(`${JSON.stringify(lease("shop-lock---blue"))}]}`);
  source.end();
  expect(JSON.parse(sink.text).items.map((item: { metadata: { name: string } }) => item.metadata.name)).toEqual([
    "a",
    "shop-lock",
  ]);
});

describe("the leadership", () => {
  const put = (holder: string): [string, string, CallOptions] => ["PUT", `${LEASES}/shop-lock`, json(lease("shop-lock", holder))];

  it("begins with the pod's own renewal and ends with its release", async () => {
    const { send, leader } = setup();
    await send(...put("pod-1"));
    await send("GET", `${LEASES}/shop-lock`);
    expect(leader).toEqual([true]);
    await send(...put(""));
    expect(leader).toEqual([true, false]);
  });

  it("ends with a renewal that meets a conflict", async () => {
    let status = 200;
    const { send, leader } = setup({}, (call) =>
      status === 200 ? echo(call) : jsonReply(createStatus("Conflict", "no"), status),
    );
    await send(...put("pod-1"));
    status = 409;
    await send(...put("pod-1"));
    expect(leader).toEqual([true, false]);
  });

  it("ends when the pod reads another holder", async () => {
    let holder = "pod-1";
    const { send, leader } = setup({}, (call) =>
      call.method === "GET" ? jsonReply(lease("shop-lock---blue", holder)) : echo(call),
    );
    await send(...put("pod-1"));
    holder = "pod-2";
    await send("GET", `${LEASES}/shop-lock`);
    expect(leader).toEqual([true, false]);
  });

  it("does not follow from dry runs, nor from other holders' locks", async () => {
    const { send, leader } = setup({}, (call) =>
      call.method === "GET" ? jsonReply(lease("shop-lock---blue", "pod-2")) : echo(call),
    );
    await send("PUT", `${LEASES}/shop-lock?dryRun=All`, json(lease("shop-lock", "pod-1")));
    await send("GET", `${LEASES}/shop-lock`);
    expect(leader).not.toContain(true);
  });

  it("is read from protobuf and from the old ConfigMap locks", async () => {
    const { send, leader } = setup();
    await send("PUT", `${LEASES}/shop-lock`, {
      headers: { "content-type": "application/vnd.kubernetes.protobuf" },
      body: protobufLease("shop-lock", "pod-1"),
    });
    expect(leader).toEqual([true]);
    const annotations = { "control-plane.alpha.kubernetes.io/leader": JSON.stringify({ holderIdentity: "" }) };
    await send("PUT", `${CONFIGMAPS}/shop-lock`, json({ metadata: { name: "shop-lock", annotations } }));
    expect(leader).toEqual([true, false]);
  });

  it("ends when the pod comes into another subset", async () => {
    const { send, leader, enforcer } = setup();
    await send(...put("pod-1"));
    enforcer.enforce(routes(2, {}, { subset: "green" }));
    expect(leader).toEqual([true, false]);
  });
});

function protobufLease(name: string, holder: string): Buffer {
  const type = Buffer.concat([encodeString(1, "coordination.k8s.io/v1"), encodeString(2, "Lease")]);
  const metadata = Buffer.concat([encodeString(1, name), encodeString(3, "shop")]);
  const raw = Buffer.concat([encodeBytes(1, metadata), encodeBytes(2, encodeString(1, holder))]);
  return Buffer.concat([ENVELOPE_PREFIX, encodeBytes(1, type), encodeBytes(2, raw)]);
}
