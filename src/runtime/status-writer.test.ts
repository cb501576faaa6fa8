import fc from "fast-check";
import { expect, test } from "vitest";
import { createFakeKubeClient, mergePatch } from "../../test/support/fake-kube-client.ts";
import { PODS, type Pod } from "../kube/client/resources.ts";
import { createMergePatch, isDeepEqual } from "./merge-patch.ts";
import { writeStatus } from "./status-writer.ts";

const pod = (status: Pod["status"] = {}): Pod => ({ metadata: { namespace: "a", name: "x" }, status });
const REF = { namespace: "a", name: "x" };

function setUp(status: Pod["status"] = {}) {
  const client = createFakeKubeClient();
  const stored = client.put(PODS, pod(status));
  return { client, stored, verbs: () => client.calls.map(({ verb }) => verb) };
}

test("an equal status is not written", async () => {
  const { client, stored, verbs } = setUp({ phase: "Running", podIP: "1" });
  expect(await writeStatus(client, PODS, stored, { podIP: "1", phase: "Running" })).toBe(stored);
  expect(verbs()).toEqual([]);
});

test("a field that is no longer in the status is removed", async () => {
  const { client, stored } = setUp({ phase: "Running", podIP: "1" });
  const written = await writeStatus(client, PODS, stored, { phase: "Failed" });
  expect(written?.status).toEqual({ phase: "Failed" });
});

test("after a conflict the status is computed from the newest object", async () => {
  const { client, stored, verbs } = setUp({ phase: "Pending" });
  client.put(PODS, pod({ phase: "Pending", podIP: "2" }));
  const status = ({ status: now }: Pod) => ({ ...now, phase: "Running" });
  expect((await writeStatus(client, PODS, stored, status))?.status).toEqual({ phase: "Running", podIP: "2" });
  expect(verbs()).toEqual(["patch", "get", "patch"]);
});

test("an object that was deleted, or created again, is not written", async () => {
  const { client, stored } = setUp();
  client.remove(PODS, REF);
  expect(await writeStatus(client, PODS, stored, { phase: "Running" })).toBeUndefined();
  client.put(PODS, pod({ phase: "Pending" }));
  expect(await writeStatus(client, PODS, stored, { phase: "Running" })).toBeUndefined();
  expect(client.read(PODS, REF)?.status?.phase).toBe("Pending");
});

test("an object that changes at every attempt is an error", async () => {
  const { client, stored } = setUp();
  let round = 0;
  client.before = ({ verb }) => {
    if (verb === "patch") client.put(PODS, pod({ podIP: String(++round) }));
  };
  await expect(writeStatus(client, PODS, stored, { phase: "Running" })).rejects.toMatchObject({ code: "STATUS_CONFLICT" });
});

test("a merge patch turns any object into any other, and is undefined for equal ones", () => {
  const leaf = fc.oneof(fc.string({ maxLength: 3 }), fc.integer(), fc.boolean(), fc.array(fc.integer(), { maxLength: 3 }));
  const { tree } = fc.letrec<{ tree: Record<string, unknown>; node: unknown }>((tie) => ({
    tree: fc.dictionary(fc.constantFrom("a", "b", "c"), tie("node"), { noNullPrototype: true }),
    node: fc.oneof({ depthSize: "small" }, leaf, tie("tree")),
  }));
  fc.assert(
    fc.property(tree, tree, (before, after) => {
      const patch = createMergePatch(before, after);
      expect(patch === undefined).toBe(isDeepEqual(before, after));
      if (patch !== undefined) expect(mergePatch(before, patch)).toEqual(after);
    }),
    { interruptAfterTimeLimit: 2_000 },
  );
});

test("equality ignores the order of keys, and keys with the value undefined", () => {
  expect(isDeepEqual({ a: 1, b: [{ c: 2 }] }, { b: [{ c: 2, d: undefined }], a: 1 })).toBe(true);
  expect(isDeepEqual({ a: 1 }, { b: 1 })).toBe(false);
  expect(isDeepEqual([1], { 0: 1 })).toBe(false);
  expect(isDeepEqual(null, {})).toBe(false);
});
