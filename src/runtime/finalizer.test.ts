import { expect, test } from "vitest";
import { createFakeKubeClient } from "../../test/support/fake-kube-client.ts";
import { CONFIG_MAPS, type ConfigMap } from "../kube/client/resources.ts";
import { reconcileFinalized } from "./finalizer.ts";
import type { Result } from "./reconciler.ts";

const REF = { namespace: "a", name: "x" };
const FINALIZER = "example.com/one";

function setUp(finalizers: readonly string[] = []) {
  const client = createFakeKubeClient();
  const done: string[] = [];
  client.put(CONFIG_MAPS, { metadata: { ...REF, ...(finalizers.length === 0 ? {} : { finalizers }) } });
  const read = () => client.read(CONFIG_MAPS, REF);
  const reconcile = (object = read(), cleanup: () => Promise<Result> = async () => ({})) => {
    if (object === undefined) throw new Error("the object does not exist");
    return reconcileFinalized({ client, resource: CONFIG_MAPS, finalizer: FINALIZER }, object, {
      async apply({ metadata }) {
        done.push(`apply ${metadata.finalizers}`);
        return {};
      },
      cleanup() {
        done.push("cleanup");
        return cleanup();
      },
    });
  };
  return { client, done, read, reconcile, verbs: () => client.calls.map(({ verb }) => verb) };
}

test("the finalizer is added once, before anything is created, and beside other finalizers", async () => {
  const { done, reconcile, read, verbs } = setUp(["other/two"]);
  await reconcile();
  await reconcile();
  expect(done).toEqual([`apply other/two,${FINALIZER}`, `apply other/two,${FINALIZER}`]);
  expect(read()?.metadata.finalizers).toEqual(["other/two", FINALIZER]);
  expect(verbs()).toEqual(["patch"]);
});

test("an object in deletion is cleaned up, and then removed", async () => {
  const { client, done, reconcile, read } = setUp([FINALIZER]);
  await client.delete(CONFIG_MAPS, REF);
  expect(read()?.metadata.deletionTimestamp).toBeDefined();
  expect(await reconcile()).toEqual({});
  expect([done, read()]).toEqual([["cleanup"], undefined]);
});

test("an object stays while its clean-up fails or needs more time, and keeps other finalizers", async () => {
  const { client, reconcile, read } = setUp([FINALIZER, "other/two"]);
  await client.delete(CONFIG_MAPS, REF);
  await expect(reconcile(read(), () => Promise.reject(new Error("not yet")))).rejects.toThrow("not yet");
  expect(await reconcile(read(), async () => ({ requeueAfterMs: 10 }))).toEqual({ requeueAfterMs: 10 });
  expect(read()?.metadata.finalizers).toEqual([FINALIZER, "other/two"]);
  await reconcile();
  expect(read()?.metadata.finalizers).toEqual(["other/two"]);
});

test("an object in deletion without the finalizer needs no clean-up, and an object that does not exist is no error", async () => {
  const { client, done, reconcile, read } = setUp(["other/two"]);
  await client.delete(CONFIG_MAPS, REF);
  await reconcile();
  expect(done).toEqual([]);
  const going = read() as ConfigMap;
  client.remove(CONFIG_MAPS, REF);
  expect(await reconcile({ ...going, metadata: { ...going.metadata, finalizers: [FINALIZER] } })).toEqual({});
});

test("a finalizer that another program adds at the same time is not lost", async () => {
  const { client, reconcile, read } = setUp();
  const stale = read();
  client.put(CONFIG_MAPS, { metadata: { ...REF, finalizers: ["other/two"] } });
  await expect(reconcile(stale)).rejects.toMatchObject({ status: { reason: "Conflict" } });
  expect(read()?.metadata.finalizers).toEqual(["other/two"]);
});
