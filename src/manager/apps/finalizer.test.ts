import { expect, it } from "vitest";
import { createFakeKubeClient } from "../../../test/support/fake-kube-client.ts";
import { sampleVirtualApp } from "../../../test/support/virtual-app.ts";
import { ROUTES_FINALIZER } from "../../api/finalizers.ts";
import { VIRTUAL_APPS } from "../../api/resources.ts";
import { type VirtualApp, validateVirtualApp } from "../../api/virtual-app.ts";
import { setFinalizer } from "./finalizer.ts";

const REF = { namespace: "shop", name: "app" };
const never = new AbortController().signal;

function cluster(finalizers: string[] = []) {
  const checked = validateVirtualApp(sampleVirtualApp());
  if (!checked.ok) throw new Error("the sample is not valid");
  const client = createFakeKubeClient();
  const object = client.put<VirtualApp>(VIRTUAL_APPS, { ...checked.value, metadata: { ...REF, finalizers } });
  const read = () => client.read<VirtualApp>(VIRTUAL_APPS, REF)?.metadata.finalizers ?? [];
  return { client, object, read };
}

it("adds and removes the finalizer, and keeps other finalizers", async () => {
  const { client, object, read } = cluster(["example.com/other"]);
  const after = await setFinalizer(client, VIRTUAL_APPS, object, true, never);
  expect(read()).toEqual(["example.com/other", ROUTES_FINALIZER]);
  if (after === undefined) throw new Error("the object is gone");
  await setFinalizer(client, VIRTUAL_APPS, after, false, never);
  expect(read()).toEqual(["example.com/other"]);
});

it("sends no request if nothing changes", async () => {
  const { client, object } = cluster();
  expect(await setFinalizer(client, VIRTUAL_APPS, object, false, never)).toBe(object);
  expect(client.calls).toEqual([]);
});

it("tells whether this call added the finalizer, and not another manager", async () => {
  const { client, object } = cluster();
  const told: string[] = [];
  await setFinalizer(client, VIRTUAL_APPS, object, true, never, () => told.push("first"));
  await setFinalizer(client, VIRTUAL_APPS, object, true, never, () => told.push("with an object that is behind"));
  expect(told).toEqual(["first"]);
});

it("loses no finalizer that was added after the read", async () => {
  const { client, object, read } = cluster();
  client.put<VirtualApp>(VIRTUAL_APPS, { ...object, metadata: { ...object.metadata, finalizers: ["example.com/late"] } });
  await setFinalizer(client, VIRTUAL_APPS, object, true, never);
  expect(read()).toEqual(["example.com/late", ROUTES_FINALIZER]);
});

it("does not change an object that is gone, was created again, or is being deleted by now", async () => {
  const gone = cluster();
  gone.client.remove(VIRTUAL_APPS, REF);
  expect(await setFinalizer(gone.client, VIRTUAL_APPS, gone.object, true, never)).toBeUndefined();
  gone.client.put<VirtualApp>(VIRTUAL_APPS, gone.object);
  expect(await setFinalizer(gone.client, VIRTUAL_APPS, gone.object, true, never)).toBeUndefined();
  const { client, object, read } = cluster(["example.com/other"]);
  const metadata = { ...object.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" };
  client.put<VirtualApp>(VIRTUAL_APPS, { ...object, metadata });
  expect((await setFinalizer(client, VIRTUAL_APPS, object, true, never))?.metadata.deletionTimestamp).toBeDefined();
  expect(read()).toEqual(["example.com/other"]);
});

it("gives up on an object that keeps changing", async () => {
  const { client, object } = cluster();
  client.before = ({ verb }) => {
    if (verb === "patch") client.put<VirtualApp>(VIRTUAL_APPS, object);
  };
  await expect(setFinalizer(client, VIRTUAL_APPS, object, true, never)).rejects.toMatchObject({ code: "FINALIZER_CONFLICT" });
});
