import { expect, test } from "vitest";
import { createFakeKubeClient } from "../../test/support/fake-kube-client.ts";
import { CONFIG_MAPS, type ConfigMap } from "../kube/client/resources.ts";
import { createIfMissing, ensure } from "./ensure.ts";

const REF = { namespace: "a", name: "x" };
const desired = { metadata: { ...REF, labels: { app: "one" } }, data: { key: "new" } };

function setUp(stored?: Partial<ConfigMap>) {
  const client = createFakeKubeClient();
  const object = stored && client.put<ConfigMap>(CONFIG_MAPS, { ...stored, metadata: { ...REF, ...stored.metadata } });
  const read = () => client.read<ConfigMap>(CONFIG_MAPS, REF);
  return { client, object, read, verbs: () => client.calls.map(({ verb }) => verb) };
}

test("a missing object is created", async () => {
  const { client, read, verbs } = setUp();
  expect(await ensure(client, CONFIG_MAPS, undefined, desired)).toEqual(read());
  expect([read()?.data, verbs()]).toEqual([{ key: "new" }, ["create"]]);
});

test("a missing object can be created by an apply", async () => {
  const { client, read, verbs } = setUp();
  expect(await ensure(client, CONFIG_MAPS, undefined, desired, { createBy: "apply" })).toEqual(read());
  expect([read()?.data, verbs()]).toEqual([{ key: "new" }, ["patch"]]);
});

test("an object that another writer has just created stays as it is", async () => {
  const { client, read } = setUp({ data: { key: "theirs" } });
  expect(await ensure(client, CONFIG_MAPS, undefined, desired)).toBeUndefined();
  expect(await createIfMissing(client, CONFIG_MAPS, desired, undefined)).toBeUndefined();
  expect(read()?.data).toEqual({ key: "theirs" });
});

test("a difference is patched, further labels and fields stay, and then nothing is written", async () => {
  const { client, object, read, verbs } = setUp({ metadata: { labels: { app: "two", theirs: "yes" } }, data: { old: "1" } });
  const written = await ensure(client, CONFIG_MAPS, object, desired);
  expect(written).toEqual(read());
  expect(read()?.metadata.labels).toEqual({ app: "one", theirs: "yes" });
  expect(read()?.data).toEqual({ key: "new" });
  expect(await ensure(client, CONFIG_MAPS, written, desired)).toBeUndefined();
  expect(verbs()).toEqual(["patch"]);
});

test("a change since the comparison is a conflict, and is not overwritten", async () => {
  const { client, object, read } = setUp({ data: { key: "old" } });
  client.put<ConfigMap>(CONFIG_MAPS, { metadata: REF, data: { key: "theirs" } });
  await expect(ensure(client, CONFIG_MAPS, object, desired)).rejects.toMatchObject({ status: { reason: "Conflict" } });
  expect(read()?.data).toEqual({ key: "theirs" });
});
