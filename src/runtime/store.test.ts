import { expect, test } from "vitest";
import type { KubeObject } from "../kube/types.ts";
import { type Change, createStore } from "./store.ts";

const object = (name: string, resourceVersion: string, more: object = {}): KubeObject => ({
  metadata: { namespace: "a", name, uid: `uid-${name}`, resourceVersion, ...more },
});

function setUp() {
  const errors: unknown[] = [];
  const store = createStore<KubeObject>((error) => errors.push(error));
  const changes: string[] = [];
  const describe = (change: Change<KubeObject>) =>
    `${change.type} ${change.object.metadata.name}@${change.object.metadata.resourceVersion}`;
  store.onChange((change) => changes.push(describe(change)));
  return { store, errors, changes, take: () => changes.splice(0) };
}

test("a second list publishes the differences, deletions first, and leaves exactly the list", () => {
  const { store, take } = setUp();
  store.replace([object("x", "1"), object("y", "2"), object("z", "3")]);
  expect(take()).toEqual(["added x@1", "added y@2", "added z@3"]);
  store.replace([object("y", "2"), object("z", "9"), object("w", "8")]);
  expect(take()).toEqual(["deleted x@1", "updated z@9", "added w@8"]);
  expect(store.list().map(({ metadata }) => metadata.name)).toEqual(["y", "z", "w"]);
});

test("handlers see the whole new state at the first change of a list", () => {
  const { store } = setUp();
  store.replace([object("x", "1")]);
  const seen: (string | undefined)[][] = [];
  store.onChange(() => seen.push(store.list().map(({ metadata }) => metadata.name)));
  seen.length = 0;
  store.replace([object("y", "2"), object("z", "3")]);
  expect(seen).toEqual([
    ["y", "z"],
    ["y", "z"],
    ["y", "z"],
  ]);
});

test("an equal version is no change, and neither is the deletion of an unknown object", () => {
  const { store, take } = setUp();
  store.upsert(object("x", "1"));
  store.upsert(object("x", "1"));
  store.remove(object("y", "2"));
  expect(take()).toEqual(["added x@1"]);
});

test("an object that is created again under the same name is a deletion and an addition", () => {
  const { store, take } = setUp();
  store.replace([object("x", "1")]);
  take();
  store.replace([object("x", "5", { uid: "other" })]);
  expect(take()).toEqual(["deleted x@1", "added x@5"]);
});

test("objects are deeply frozen", () => {
  const { store } = setUp();
  store.upsert(object("x", "1", { labels: { l: "1" } }));
  const labels = store.get("x", "a")?.metadata.labels as Record<string, string>;
  expect(() => Object.assign(labels, { l: "2" })).toThrow(TypeError);
});

test("a late handler gets all objects, and a removed handler gets nothing", () => {
  const { store } = setUp();
  store.replace([object("x", "1")]);
  const seen: string[] = [];
  const end = store.onChange(({ type, object: { metadata } }) => seen.push(`${type} ${metadata.name}`));
  store.upsert(object("y", "2"));
  end();
  store.upsert(object("z", "3"));
  expect(seen).toEqual(["added x", "added y"]);
});

test("a handler that throws does not affect other handlers", () => {
  const errors: unknown[] = [];
  const store = createStore<KubeObject>((error) => errors.push(error));
  store.onChange(() => {
    throw new Error("bad handler");
  });
  const seen: string[] = [];
  store.onChange(({ type }) => seen.push(type));
  store.replace([object("x", "1")]);
  expect([seen, errors.length, store.hasSynced]).toEqual([["added"], 1, true]);
});

test("synced resolves with the first list, even an empty one", async () => {
  const { store } = setUp();
  expect(store.hasSynced).toBe(false);
  store.replace([]);
  await store.synced;
  expect(store.hasSynced).toBe(true);
});

function setUpSynced(...objects: KubeObject[]) {
  const { store, take } = setUp();
  store.replace(objects, "10");
  take();
  return { store, take, versionOf: (name: string) => store.get(name, "a")?.metadata.resourceVersion };
}

test("a written object is in the store before the watch brings it, and is published once", () => {
  const { store, take, versionOf } = setUpSynced(object("x", "1"));
  store.wrote(object("x", "11"));
  expect([versionOf("x"), take()]).toEqual(["11", ["updated x@11"]]);
  store.upsert(object("x", "11"));
  expect(take()).toEqual([]);
});

test("a created object is in the store before the watch brings it", () => {
  const { store, take } = setUpSynced();
  store.wrote(object("x", "11"));
  store.upsert(object("x", "11"));
  expect(take()).toEqual(["added x@11"]);
});

test("a written object that is older than the stored one, or cannot be compared, changes nothing", () => {
  const { store, take } = setUpSynced(object("x", "9"));
  store.wrote(object("x", "8"));
  store.wrote(object("x", "9"));
  store.wrote(object("x", "abc"));
  expect(take()).toEqual([]);
});

test("a write that is reported after the deletion does not bring the object back", () => {
  const { store, take } = setUpSynced(object("x", "9"));
  store.remove(object("x", "12"));
  expect(take()).toEqual(["deleted x@12"]);
  store.wrote(object("x", "11"));
  expect(take()).toEqual([]);
});

test("a write that is reported after a list without the object does not bring it back", () => {
  const { store, take, versionOf } = setUpSynced(object("x", "9"));
  store.replace([], "12");
  take();
  store.wrote(object("x", "11"));
  expect([versionOf("x"), take()]).toEqual([undefined, []]);
});

test("the deletion of a written object removes it", () => {
  const { store, take } = setUpSynced(object("x", "9"));
  store.wrote(object("x", "11"));
  store.remove(object("x", "12"));
  expect(take()).toEqual(["updated x@11", "deleted x@12"]);
});

test("events from before a write do not take it back, and later events apply", () => {
  const { store, take, versionOf } = setUpSynced(object("x", "1"));
  store.wrote(object("x", "15"));
  take();
  store.upsert(object("x", "12"));
  expect([versionOf("x"), take()]).toEqual(["15", []]);
  store.upsert(object("x", "16"));
  expect(take()).toEqual(["updated x@16"]);
});

test("the late deletion of a former object does not remove the one that was written under its name", () => {
  const { store, take, versionOf } = setUpSynced(object("x", "1"));
  store.wrote(object("x", "15", { uid: "other" }));
  expect(take()).toEqual(["deleted x@1", "added x@15"]);
  store.remove(object("x", "12"));
  expect([versionOf("x"), take()]).toEqual(["15", []]);
});

test("a list from before a write keeps what was written, and the next list is the truth again", () => {
  const { store, take, versionOf } = setUpSynced(object("x", "1"));
  store.wrote(object("x", "15"));
  store.wrote(object("y", "16"));
  take();
  store.replace([object("x", "1")], "12");
  expect([versionOf("x"), versionOf("y"), take()]).toEqual(["15", "16", []]);
  store.replace([object("x", "1")], "12");
  expect([versionOf("x"), versionOf("y")]).toEqual(["1", undefined]);
});

test("events from before a write do not take it back, even after a list from before it", () => {
  const { store, take, versionOf } = setUpSynced(object("x", "1"));
  store.wrote(object("x", "15"));
  store.replace([object("x", "1")], "12");
  take();
  store.upsert(object("x", "13"));
  expect([versionOf("x"), take()]).toEqual(["15", []]);
  store.upsert(object("x", "16"));
  expect(take()).toEqual(["updated x@16"]);
});

test("a write that is reported before the first list is left to the list", () => {
  const { store, take } = setUp();
  store.wrote(object("x", "11"));
  expect(take()).toEqual([]);
});
