import { expect, it } from "vitest";
import { createFakeKubeClient } from "../../test/support/fake-kube-client.ts";
import { CONFIG_MAPS, type ConfigMap } from "../kube/client/resources.ts";
import { setFinalizer } from "./finalizer.ts";

const REF = { namespace: "shop", name: "x" };
const FINALIZER = "example.com/one";

function cluster(finalizers: string[] = []) {
  const client = createFakeKubeClient();
  const object = client.put<ConfigMap>(CONFIG_MAPS, { metadata: { ...REF, finalizers } });
  const how = { client, resource: CONFIG_MAPS, finalizer: FINALIZER };
  const read = () => client.read<ConfigMap>(CONFIG_MAPS, REF)?.metadata.finalizers ?? [];
  return { client, object, how, read };
}

it("adds and removes the finalizer, and keeps other finalizers", async () => {
  const { object, how, read } = cluster(["example.com/other"]);
  const after = await setFinalizer(how, object, true);
  expect(read()).toEqual(["example.com/other", FINALIZER]);
  if (after === undefined) throw new Error("the object is gone");
  await setFinalizer(how, after, false);
  expect(read()).toEqual(["example.com/other"]);
});

it("sends no request if nothing changes", async () => {
  const { client, object, how } = cluster();
  expect(await setFinalizer(how, object, false)).toBe(object);
  expect(client.calls).toEqual([]);
});

it("tells whether this call added the finalizer, and not another manager", async () => {
  const { object, how } = cluster();
  const told: string[] = [];
  await setFinalizer({ ...how, onChanged: () => told.push("first") }, object, true);
  await setFinalizer({ ...how, onChanged: () => told.push("with an object that is behind") }, object, true);
  expect(told).toEqual(["first"]);
});

it("loses no finalizer that was added after the read", async () => {
  const { client, object, how, read } = cluster();
  client.put<ConfigMap>(CONFIG_MAPS, { ...object, metadata: { ...object.metadata, finalizers: ["example.com/late"] } });
  await setFinalizer(how, object, true);
  expect(read()).toEqual(["example.com/late", FINALIZER]);
});

it("does not change an object that is gone, was created again, or is being deleted by now", async () => {
  const gone = cluster();
  gone.client.remove(CONFIG_MAPS, REF);
  expect(await setFinalizer(gone.how, gone.object, true)).toBeUndefined();
  gone.client.put<ConfigMap>(CONFIG_MAPS, gone.object);
  expect(await setFinalizer(gone.how, gone.object, true)).toBeUndefined();
  const { client, object, how, read } = cluster(["example.com/other"]);
  const metadata = { ...object.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" };
  client.put<ConfigMap>(CONFIG_MAPS, { ...object, metadata });
  expect((await setFinalizer(how, object, true))?.metadata.deletionTimestamp).toBeDefined();
  expect(read()).toEqual(["example.com/other"]);
});

it("gives up on an object that keeps changing", async () => {
  const { client, object, how } = cluster();
  client.before = ({ verb }) => {
    if (verb === "patch") client.put<ConfigMap>(CONFIG_MAPS, object);
  };
  await expect(setFinalizer(how, object, true)).rejects.toMatchObject({ code: "FINALIZER_CONFLICT" });
});
