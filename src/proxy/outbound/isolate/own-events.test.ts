import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../../test/support/fake-clock.ts";
import { isolateDeps } from "../../../../test/support/isolate.ts";
import { envelope } from "../../../../test/support/kube-protobuf.ts";
import { type CallOptions, callOf, fakeUpstream, jsonReply } from "../../../../test/support/layer-call.ts";
import { type Routes, routes } from "../../../../test/support/test-routes.ts";
import type { Snapshot } from "../../../mesh/ownership/snapshot.ts";
import { createEnforcer } from "../../session/enforcer.ts";
import { isolate } from "./isolate.ts";

const EVENTS = "/api/v1/namespaces/shop/events";
const LEASE = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", namespace: "shop", name: "shop-lock" };
const POD = { apiVersion: "v1", kind: "Pod", namespace: "shop", name: "app-0" };
const eventOf = (involvedObject: object, name = "shop-lock.1") =>
  JSON.stringify({ kind: "Event", apiVersion: "v1", metadata: { name }, involvedObject });
const merge = { "content-type": "application/strategic-merge-patch+json" };

/** The layer of a pod of subset blue, whose namespace `shop` belongs to the default subset. */
function setup(of: Routes = { blue: ["a"], defaultSubset: ["shop"] }, more: Partial<Snapshot> = {}) {
  const session = createEnforcer();
  session.enforce(routes(1, of, more));
  const upstream = fakeUpstream(({ method }) => jsonReply({}, method === "POST" ? 201 : 200));
  const layer = isolate(isolateDeps({ session, clock: createFakeClock() }))(upstream);
  const statusOf = (method: string, target: string, options?: CallOptions) =>
    layer(callOf(method, target, options)).then(
      ({ status }) => status,
      (error: { status?: { code?: number } }) => error.status?.code,
    );
  const enforce = (next: Partial<Snapshot>) => session.enforce(routes(2, of, next));
  return { statusOf, enforce, sent: upstream.calls };
}

describe("an Event about the operator itself, in the namespace of its pods that another subset owns,", () => {
  it("passes as it is, about its lock and about its pod", async () => {
    const { statusOf, sent } = setup();
    for (const subject of [LEASE, POD]) expect(await statusOf("POST", EVENTS, { body: eventOf(subject) })).toBe(201);
    expect(sent.map(({ body }) => String(body))).toEqual([LEASE, POD].map((subject) => eventOf(subject)));
  });
  it("passes in protobuf, and by events.k8s.io", async () => {
    const { statusOf } = setup();
    const fields = ([1, 2, 3, 5] as const).map(
      (number) => [number, ["", "Pod", "shop", "app-0", "", "v1"][number] ?? ""] as const,
    );
    const body = envelope("events.k8s.io/v1", "Event", [
      [1, [[1, "app-0.1"]]],
      [8, fields],
    ]);
    const target = "/apis/events.k8s.io/v1/namespaces/shop/events";
    expect(await statusOf("POST", target, { body, headers: { "content-type": "application/vnd.kubernetes.protobuf" } })).toBe(
      201,
    );
  });
  it("passes while the namespace moves, and while its owner is unknown", async () => {
    for (const of of [{ blue: ["shop"], fenced: ["shop"] }, { blue: ["a"] }])
      expect(await setup(of).statusOf("POST", EVENTS, { body: eventOf(LEASE) })).toBe(201);
  });
  it("passes while its namespace is frozen, and other Events there do not", async () => {
    const more = { frozen: [{ namespace: "shop", reason: "restore" }] };
    const { statusOf } = setup({ blue: ["shop"] }, more);
    expect(await statusOf("POST", EVENTS, { body: eventOf(LEASE) })).toBe(201);
    expect(await statusOf("PATCH", `${EVENTS}/shop-lock.1`, { body: '{"count":2}', headers: merge })).toBe(200);
    expect(await statusOf("POST", EVENTS, { body: eventOf({ ...POD, name: "other-0" }) })).toBe(403);
    expect(await statusOf("PATCH", `${EVENTS}/other.1`, { body: '{"count":2}', headers: merge })).toBe(403);
  });
  it("may be patched while its namespace is frozen also if it was created before", async () => {
    const { statusOf, enforce } = setup({ blue: ["shop"] });
    expect(await statusOf("POST", EVENTS, { body: eventOf(LEASE) })).toBe(201);
    enforce({ frozen: [{ namespace: "shop", reason: "restore" }] });
    expect(await statusOf("PATCH", `${EVENTS}/shop-lock.1`, { body: '{"count":2}', headers: merge })).toBe(200);
    expect(await statusOf("PATCH", `${EVENTS}/other.1`, { body: '{"count":2}', headers: merge })).toBe(403);
  });
  it("may be patched by the pod that created it", async () => {
    const { statusOf } = setup();
    await statusOf("POST", EVENTS, { body: eventOf(LEASE) });
    expect(await statusOf("PATCH", `${EVENTS}/shop-lock.1`, { body: '{"count":2}', headers: merge })).toBe(200);
  });
});

describe("in the namespace of the pods that another subset owns, 403 answers", () => {
  const own = { body: eventOf(LEASE) };
  it.each([
    ["an Event about another object", "POST", EVENTS, { body: eventOf({ ...LEASE, kind: "Secret", apiVersion: "v1" }) }],
    ["an Event about another pod", "POST", EVENTS, { body: eventOf({ ...POD, name: "app-1" }) }],
    ["an Event in CBOR", "POST", EVENTS, { ...own, headers: { "content-type": "application/cbor" } }],
    ["an Event in another namespace", "POST", "/api/v1/namespaces/other/events", own],
    ["an update", "PUT", `${EVENTS}/shop-lock.1`, own],
    ["a delete", "DELETE", `${EVENTS}/shop-lock.1`, {}],
    ["a delete of all", "DELETE", EVENTS, {}],
    ["another resource", "POST", "/api/v1/namespaces/shop/configmaps", own],
  ] as const)("%s", async (_, method, target, options) => {
    const { statusOf, sent } = setup({ blue: ["a"], defaultSubset: ["shop", "other"] });
    expect(await statusOf("POST", EVENTS, own)).toBe(201);
    expect(await statusOf(method, target, options)).toBe(403);
    expect(sent).toHaveLength(1);
  });
  it.each([
    ["names another subject", merge, '{"involvedObject":{"name":"x"}}'],
    ["replaces the whole Event", merge, '{"$patch":"replace"}'],
    ["is a JSON Patch", { "content-type": "application/json-patch+json" }, "[]"],
    ["is an apply", { "content-type": "application/apply-patch+yaml" }, eventOf(LEASE)],
    ["cannot be read", merge, "{"],
  ])("a patch that %s", async (_, headers, body) => {
    const { statusOf } = setup();
    expect(await statusOf("POST", EVENTS, own)).toBe(201);
    expect(await statusOf("PATCH", `${EVENTS}/shop-lock.1`, { body, headers })).toBe(403);
  });
  it("the patch of an Event whose create the API server has refused", async () => {
    const session = createEnforcer();
    session.enforce(routes(1, { blue: ["a"], defaultSubset: ["shop"] }));
    const layer = isolate(isolateDeps({ session, clock: createFakeClock() }))(fakeUpstream(() => jsonReply({}, 403)));
    await layer(callOf("POST", EVENTS, own));
    const patch = layer(callOf("PATCH", `${EVENTS}/shop-lock.1`, { body: "{}", headers: merge }));
    await expect(patch).rejects.toMatchObject({ status: { code: 404 } });
  });
});

describe("404 answers the patch of an Event that it has not created, so that a recorder creates it anew,", () => {
  const patched = (name: string) => ["PATCH", `${EVENTS}/${name}`, { body: "{}", headers: merge }] as const;
  it("whoever created it", async () => {
    const { statusOf, sent } = setup();
    await statusOf("POST", EVENTS, { body: eventOf(LEASE) });
    expect(await statusOf(...patched("shop-lock.2"))).toBe(404);
    expect(sent).toHaveLength(1);
  });
  it("also after a dry run, which leaves the name to others", async () => {
    const { statusOf } = setup();
    expect(await statusOf("POST", `${EVENTS}?dryRun=All`, { body: eventOf(LEASE) })).toBe(201);
    expect(await statusOf(...patched("shop-lock.1"))).toBe(404);
  });
  it("but not where the guard only warns, or no other subset owns the namespace", async () => {
    expect(await setup({ blue: ["a"], defaultSubset: ["shop"] }, { guard: "Warn" }).statusOf(...patched("shop-lock.1"))).toBe(
      200,
    );
    expect(await setup({ blue: ["shop"] }).statusOf(...patched("shop-lock.1"))).toBe(200);
  });
});

it("an Event in a namespace that the subset owns passes, also if it cannot be read", async () => {
  const { statusOf, sent } = setup({ blue: ["shop"] });
  const options = { body: "no Event", headers: { "content-type": "application/cbor" } };
  expect(await statusOf("POST", EVENTS, options)).toBe(201);
  expect(sent).toHaveLength(1);
});

it("a write that the guard only warns of passes without a warning if it is an own Event", async () => {
  const { statusOf, sent } = setup({ blue: ["a"], defaultSubset: ["shop"] }, { guard: "Warn" });
  await statusOf("POST", EVENTS, { body: eventOf(POD) });
  await statusOf("POST", EVENTS, { body: eventOf({ ...POD, name: "app-1" }) });
  expect(sent.map(({ record }) => record.decision)).toEqual(["forwarded", "warned"]);
});
