import { describe, expect, it } from "vitest";
import { CONFIGMAPS, LEASES, setupElection } from "../../../../test/support/election-setup.ts";
import { table } from "../../../../test/support/route-table.ts";

const APPLY = "application/apply-patch+yaml";
const YAML = "application/yaml";
const JSON_PATCH = "application/json-patch+json";
const LOCK_IN_YAML = "metadata:\n  name: shop-lock\n";
const typed = (type: string, body: string) => ({ headers: { "content-type": type }, body });

it("an apply patch in JSON, which client-go, kube-rs and kubectl send, has the lock's name replaced", async () => {
  const { send, sentText } = setupElection();
  const body = '{ "metadata": {"name":"shop-lock"}, "spec":{"leaseTransitions":9007199254740993} }';
  await send("PATCH", `${LEASES}/shop-lock`, typed(APPLY, body));
  expect(sentText()).toBe(body.replace('"shop-lock"', '"shop-lock---blue"'));
});

describe("a lock that is written in a form without a name to replace", () => {
  it.each([
    ["a JSON Patch", "PATCH", JSON_PATCH, '[{"op":"replace","path":"/spec/holderIdentity","value":"pod-1"}]'],
    ["a JSON Patch without operations", "PATCH", JSON_PATCH, "[]"],
    ["an apply patch in YAML", "PATCH", APPLY, LOCK_IN_YAML],
    ["an apply patch in YAML that looks like JSON", "PATCH", APPLY, "{metadata: {name: shop-lock}}"],
    ["an apply patch without a body", "PATCH", APPLY, ""],
    ["an update in YAML", "PUT", YAML, LOCK_IN_YAML],
    ["an update in YAML that is JSON", "PUT", YAML, '{"metadata":{"name":"shop-lock"}}'],
  ])("is refused: %s", async (_, method, type, body) => {
    const { refusal, upstream } = setupElection();
    const status = await refusal(method, `${LEASES}/shop-lock`, typed(type, body));
    expect(status).toMatchObject({ code: 415, reason: "UnsupportedMediaType" });
    expect(status.message).toMatch(
      /^ctrlmesh: (patch|update) leases: .+; send JSON or protobuf, and a patch as a merge or apply/,
    );
    expect(upstream.calls).toEqual([]);
  });

  it.each([
    ["the lock", "metadata: {name: shop-lock}\n"],
    ["another subset's lock", "metadata: {name: shop-lock---green}\n"],
    ["any object, whose name may be a lock's", "metadata: {name: settings}\n"],
    ["no readable name", "metadata: [\n"],
  ])("is refused in a create with YAML of %s", async (_, body) => {
    const { refusal, upstream } = setupElection();
    for (const target of [LEASES, CONFIGMAPS]) expect((await refusal("POST", target, typed(YAML, body))).code).toBe(415);
    expect(upstream.calls).toEqual([]);
  });

  it.each([
    ["PATCH", `${LEASES}/shop-lock`, JSON_PATCH, '[{"op":"replace","path":"/spec/holderIdentity","value":"pod-1"}]'],
    ["PATCH", `${LEASES}/shop-lock`, APPLY, LOCK_IN_YAML],
    ["POST", LEASES, YAML, LOCK_IN_YAML],
  ])("passes as it is where the app has no subsets: %s %s %s", async (method, target, type, body) => {
    const { send, sentText, sent } = setupElection({ subset: "", table: table([], {}) });
    expect((await send(method, target, typed(type, body))).status).toBe(200);
    expect([sentText(), sent()?.headers["content-type"]]).toEqual([body, type]);
  });

  it("passes a JSON Patch of the default subset's lock, which keeps its name, and refuses its create in YAML", async () => {
    const patch = typed(JSON_PATCH, '[{"op":"replace","path":"/spec/holderIdentity","value":"pod-1"}]');
    const { send, refusal } = setupElection({ subset: "" });
    expect((await send("PATCH", `${LEASES}/shop-lock`, patch)).status).toBe(200);
    expect((await refusal("POST", LEASES, typed(YAML, LOCK_IN_YAML))).code).toBe(415);
  });
});
