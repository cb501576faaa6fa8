import { describe, expect, it } from "vitest";
import { LEASES, setupElection } from "../../../../test/support/election-setup.ts";

const APPLY = "application/apply-patch+yaml";
const typed = (type: string, body: string) => ({ headers: { "content-type": type }, body });

describe("an apply patch of the lock", () => {
  it("in JSON, which client-go and kubectl send, has its name replaced", async () => {
    const { send, sentText } = setupElection();
    const body = '{ "metadata": {"name":"shop-lock"}, "spec":{"leaseTransitions":9007199254740993} }';
    await send("PATCH", `${LEASES}/shop-lock`, typed(APPLY, body));
    expect(sentText()).toBe(body.replace('"shop-lock"', '"shop-lock---blue"'));
  });

  it.each([
    ["plain", "shop-lock"],
    ["in single quotes", "'shop-lock'"],
    ["in double quotes, escaped", '"shop\\u002dlock"'],
  ])("in YAML has its name replaced (%s), and no other byte changes", async (_, name) => {
    const { send, sentText } = setupElection();
    const body = (text: string) =>
      `# é: shop-lock\napiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: # lock\n  name: ${text} # shop-lock\n  namespace: shop\nspec: {holderIdentity: shop-lock, leaseDurationSeconds: 015}\n`;
    await send("PATCH", `${LEASES}/shop-lock`, typed(APPLY, body(name)));
    expect(sentText()).toBe(body('"shop-lock---blue"'));
  });

  it("in YAML's flow style has its name replaced, although it looks like JSON", async () => {
    const { send, sentText } = setupElection();
    await send("PATCH", `${LEASES}/shop-lock`, typed(APPLY, "{metadata: {name: shop-lock}}"));
    expect(sentText()).toBe('{metadata: {name: "shop-lock---blue"}}');
  });

  it("in YAML of another object stays as it is", async () => {
    const { send, sentText } = setupElection();
    await send("PATCH", `${LEASES}/shop-lock`, typed(APPLY, "metadata:\n  name: other\n"));
    expect(sentText()).toBe("metadata:\n  name: other\n");
  });

  it.each([
    ["aliases, of which nine lines can be gigabytes", "a: &a [x]\nb: *a\nmetadata: {name: shop-lock}\n"],
    ["an anchor", "metadata: &m {name: shop-lock}\n"],
    ["a tag", "metadata: {name: !!str shop-lock}\n"],
    ["a merge key", "metadata: {name: shop-lock, <<: {name: x}}\n"],
    ["a key twice", "metadata: {name: shop-lock, name: shop-lock---green}\n"],
    ["two documents", "metadata: {name: shop-lock}\n---\nmetadata: {name: x}\n"],
    ["a name in block style", "metadata:\n  name: |-\n    shop-lock\n"],
    ["no object", "- metadata\n"],
    ["no YAML", "metadata: [\n"],
  ])("in YAML with %s is refused", async (_, body) => {
    const { refusal, upstream } = setupElection();
    expect((await refusal("PATCH", `${LEASES}/shop-lock`, typed(APPLY, body))).code).toBe(400);
    expect(upstream.calls).toEqual([]);
  });

  it("in YAML that is larger than any lock is refused", async () => {
    const { refusal } = setupElection();
    const body = `metadata: {name: shop-lock}\nx: ${"y".repeat(70_000)}\n`;
    expect((await refusal("PATCH", `${LEASES}/shop-lock`, typed(APPLY, body))).code).toBe(413);
  });
});

describe("a create in YAML", () => {
  const yaml = "application/yaml";
  it("is renamed for the lock, refused for another subset's lock, and passed on unchanged for any other object", async () => {
    const { send, refusal, sentText, sent } = setupElection();
    await send("POST", LEASES, typed(yaml, "metadata: {name: shop-lock}\n"));
    expect(sentText()).toBe('metadata: {name: "shop-lock---blue"}\n');
    expect((await refusal("POST", LEASES, typed(yaml, "metadata: {name: shop-lock---green}\n"))).code).toBe(403);
    await send("POST", LEASES, typed(yaml, "metadata: {name: settings}\n"));
    expect([sentText(), sent()?.record.lock]).toEqual(["metadata: {name: settings}\n", false]);
  });

  it("cannot smuggle a lock's name past by a key in another case", async () => {
    const { refusal } = setupElection();
    expect((await refusal("POST", LEASES, typed(yaml, "metadata: {name: x, Name: shop-lock---green}\n"))).code).toBe(400);
  });
});

describe("a JSON Patch of the lock", () => {
  const type = "application/json-patch+json";

  it.each([
    [
      "tested",
      '[ {"op":"test","path":"/metadata/name","value":"shop-lock"}, {"op":"add","path":"/metadata/generation","value":9007199254740993} ]',
    ],
    [
      "in all of the metadata",
      '[{"op":"replace","path":"/metadata","value":{"labels":{"name":"x"},"name":"shop-lock","generation":9007199254740993}}]',
    ],
    ["in the whole object", '[{"value":{"spec":{"n":1.0},"metadata":{"name" : "shop-lock"}},"path":"","op":"replace"}]'],
    ["with escapes", '[{"op":"replace","path":"\\u002fmetadata/name","value":"shop\\u002dlock"}]'],
    [
      "twice",
      '[{"op":"test","path":"/metadata/name","value":"shop-lock"},{"op":"add","path":"/metadata/name","value":"shop-lock"}]',
    ],
  ])("has the name replaced (%s), and no other byte changes", async (_, body) => {
    const { send, sentText } = setupElection();
    await send("PATCH", `${LEASES}/shop-lock`, typed(type, body));
    expect(sentText()).toBe(body.replaceAll(/"shop(-|\\u002d)lock"/g, '"shop-lock---blue"'));
  });

  it.each([
    '[{"op":"test","path":"/metadata/name","value":"other"}]',
    '[{"op":"add","path":"/metadata/labels","value":{"name":"shop-lock"}}]',
    '[{"op":"add","path":"/spec","value":{"metadata":{"name":"shop-lock"}}}]',
    '[{"op":"add","path":"/metadata","value":{"a":{"name":"shop-lock"}}}]',
    '[{"op":"add","path":"","value":["shop-lock"]},{"op":"remove","path":"/metadata/name"}]',
  ])("without the name stays as it is: %s", async (body) => {
    const { send, sentText } = setupElection();
    await send("PATCH", `${LEASES}/shop-lock`, typed(type, body));
    expect(sentText()).toBe(body);
  });

  it("without the name goes on byte for byte", async () => {
    const { send, sentText } = setupElection();
    const body = '[ {"op":"replace", "path":"/spec/leaseTransitions", "value":9007199254740993} ]';
    await send("PATCH", `${LEASES}/shop-lock`, typed(type, body));
    expect(sentText()).toBe(body);
  });

  it("that is no list of operations is refused", async () => {
    const { refusal } = setupElection();
    expect((await refusal("PATCH", `${LEASES}/shop-lock`, typed(type, "{}"))).code).toBe(400);
  });
});
