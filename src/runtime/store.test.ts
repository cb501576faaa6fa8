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
