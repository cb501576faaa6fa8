import { describe, expect, it } from "vitest";
import { createFakeKubeClient } from "../../../test/support/fake-kube-client.ts";
import { SHARDING_CONFIGS } from "../../api/resources.ts";
import type { ShardingConfig } from "../../api/sharding-config.ts";
import { createStore } from "../../runtime/store.ts";
import { createShardingSource } from "../sharding/sharding-source.ts";
import type { SourceObject } from "./app.ts";
import { createReadBack } from "./read-back.ts";

const { signal } = new AbortController();

function setUp() {
  const client = createFakeKubeClient();
  const store = createStore<SourceObject>(() => {});
  let changes = 1;
  const { check } = createReadBack({ client, source: createShardingSource(), store }, () => changes);
  const put = (name: string, generation = 1, status: object = {}) =>
    client.put(SHARDING_CONFIGS, { metadata: { namespace: "ops", name, generation }, status } as ShardingConfig);
  const sync = (...objects: ShardingConfig[]) => store.replace(objects, objects.at(-1)?.metadata.resourceVersion);
  const birth = () => ++changes;
  const reads = () => client.calls.splice(0).map(({ verb }) => verb);
  return { client, store, put, sync, birth, reads, check: (...o: ShardingConfig[]) => check(o, changes, signal), checkAt: check };
}

const many = (count: number, put: (name: string) => ShardingConfig) =>
  Array.from({ length: count }, (_, at) => put(`config-${at}`));

describe("what a birth of a namespace costs", () => {
  it("is one list for a family of 64 configs, and one more for the next birth", async () => {
    const { put, check, birth, reads } = setUp();
    const family = many(64, put);
    expect(await check(...family)).toBe("same");
    expect(reads()).toEqual(["list"]);
    expect(await check(...family)).toBe("same");
    expect(reads()).toEqual([]);
    birth();
    expect(await check(...family)).toBe("same");
    expect(reads()).toEqual(["list"]);
  });

  it("is one list for 200 families that are checked one after the other or at once", async () => {
    const { put, check, birth, reads } = setUp();
    const roots = many(200, put);
    await Promise.all(roots.map((root) => check(root)));
    expect(reads()).toEqual(["list"]);
    birth();
    for (const root of roots) expect(await check(root)).toBe("same");
    expect(reads()).toEqual(["list"]);
  });

  it("is one request more at most if objects are newer than the list", async () => {
    const { put, check, reads } = setUp();
    await check(put("a"));
    reads();
    const family = many(64, put);
    expect(await check(...family)).toBe("same");
    expect(reads()).toEqual(["list"]);
    expect(await check(put("b"))).toBe("same");
    expect(reads()).toEqual(["get"]);
  });
});

describe("a table is not used", () => {
  it.each([1, 3])("if one of %i objects has a newer spec, which is in the store then", async (count) => {
    const { store, sync, put, check } = setUp();
    const seen = many(count, put);
    sync(...seen);
    const newer = put("config-0", 2);
    expect(await check(...seen)).toBe("edited");
    expect(store.get("config-0", "ops")).toEqual(newer);
    expect(await check(newer, ...seen.slice(1))).toBe("same");
  });

  it("if a root has another placement, which does not change its generation", async () => {
    const { store, sync, put, check } = setUp();
    const ofShards = (shards: number) => ({ placement: { start: 0, shards, active: [1] } });
    const seen = put("root", 1, ofShards(1));
    sync(seen);
    const newer = put("root", 1, ofShards(2));
    expect(await check(seen)).toBe("edited");
    expect(store.get("root", "ops")).toEqual(newer);
  });

  it.each([1, 3])("if one of %i objects is gone, or was created again under its name", async (count) => {
    const { client, put, check, birth } = setUp();
    const seen = many(count, put);
    await check(...seen);
    client.remove(SHARDING_CONFIGS, { namespace: "ops", name: "config-0" });
    birth();
    expect(await check(...seen)).toBe("gone");
    put("config-0");
    birth();
    expect(await check(...seen)).toBe("gone");
  });

  it("by a list that began before a namespace of the table was seen", async () => {
    const { client, put, checkAt, birth, reads } = setUp();
    const seen = put("a");
    let release = () => {};
    client.before = ({ verb }) => (verb === "list" ? new Promise<void>((resolve) => (release = resolve)) : undefined);
    const first = checkAt([seen], 1, signal);
    birth();
    client.before = () => {};
    put("a", 2);
    expect(await checkAt([seen], 2, signal)).toBe("edited");
    expect(reads()).toEqual(["list", "list", "get"]);
    release();
    await first;
  });
});

it("a list that failed answers nobody, and the next check lists again", async () => {
  const { client, put, check, reads } = setUp();
  const seen = put("a");
  client.before = () => {
    throw new Error("no answer");
  };
  await expect(check(seen)).rejects.toThrow("no answer");
  client.before = () => {};
  expect(await check(seen)).toBe("same");
  expect(reads()).toEqual(["list", "list"]);
});
