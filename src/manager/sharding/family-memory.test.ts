import { expect, it } from "vitest";
import { sampleShardingConfig } from "../../../test/support/sharding-config.ts";
import type { ShardingConfig } from "../../api/sharding-config.ts";
import type { Informers } from "../../runtime/informers.ts";
import { createStore } from "../../runtime/store.ts";
import { createApps } from "../apps/app.ts";
import { familyProblems } from "./sharding-edit.ts";
import { createShardingSource } from "./sharding-source.ts";

function setUp(names: readonly string[]) {
  const checked: string[] = [];
  const source = createShardingSource((family) => {
    checked.push(family.name);
    return familyProblems(family);
  });
  const store = createStore<ShardingConfig>((error) => {
    throw error;
  });
  const apps = createApps({ store: () => store } as unknown as Informers, [source]);
  let version = 0;
  /** A config of the family with its lock. */
  const put = (name: string, lock: string, metadata: object = {}, more: object = {}, spec: object = {}) => {
    const object = sampleShardingConfig({
      selector: { matchLabels: { shard: name } },
      controller: { leaderElectionName: lock },
      ...spec,
    });
    const own = { name, namespace: "ops", uid: name, generation: 1, resourceVersion: String(++version), ...metadata };
    store.upsert({ ...object, ...more, metadata: own } as unknown as ShardingConfig);
  };
  for (const name of names) put(name, `lock-${name}`);
  apps.list("ops");
  const again = () => {
    checked.length = 0;
    const list = apps.list("ops");
    return { checked: [...checked], list };
  };
  return { put, again, remove: (name: string) => store.remove(store.get(name, "ops") as ShardingConfig) };
}

it("a status of one of many families checks no family again, and the app has the new status", () => {
  const { put, again } = setUp(Array.from({ length: 50 }, (_, at) => `f${at}`));
  put("f7", "lock-f7", {}, { status: { routeVersion: 5 } });
  const { checked, list } = again();
  expect(checked).toEqual([]);
  expect(list.find(({ ref }) => ref.name === "lock-f7")?.object.status).toEqual({ routeVersion: 5 });
});

it.each<[string, object, object]>([
  ["its spec", {}, { paused: true }],
  ["an annotation", { annotations: { "ctrlmesh.kruise.io/strip-managed-fields": "true" } }, {}],
  ["a label", { labels: { team: "a" } }, {}],
  ["its owner", { ownerReferences: [{ apiVersion: "apps/v1", kind: "A", name: "a", uid: "a" }] }, {}],
])("a family is checked again after a change of %s, and no other family is", (_what, metadata, spec) => {
  const { put, again } = setUp(["a", "b", "c"]);
  put("b", "lock-b", metadata, {}, spec);
  expect(again().checked).toEqual(["lock-b"]);
  expect(again().checked).toEqual([]);
});

it("a family is checked again after a change of its placement, which is in the status", () => {
  const { put, again } = setUp(["a", "b"]);
  put("b", "lock-b", {}, { status: { placement: { start: 0 } } });
  expect(again().checked).toEqual(["lock-b"]);
});

it("a family is checked again when a config joins or leaves it, and when it conflicts with another one", () => {
  const { put, again, remove } = setUp(["a", "b"]);
  put("c", "lock-b");
  expect(again().checked).toEqual(["lock-b"]);
  remove("c");
  expect(again().checked).toEqual(["lock-b"]);
  put("lock-a", "");
  const { list } = again();
  expect(list.filter(({ spec }) => spec === undefined).map(({ ref }) => ref.name)).toEqual(["lock-a", "lock-a"]);
  remove("lock-a");
  expect(again().list.every(({ spec }) => spec !== undefined)).toBe(true);
});
