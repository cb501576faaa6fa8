import { describe, expect, it } from "vitest";
import { sampleShardingConfig } from "../../../test/support/sharding-config.ts";
import { sampleVirtualApp } from "../../../test/support/virtual-app.ts";
import { SHARDING_CONFIGS } from "../../api/resources.ts";
import type { ShardingConfig } from "../../api/sharding-config.ts";
import type { VirtualApp } from "../../api/virtual-app.ts";
import type { Resource } from "../../kube/client/resource.ts";
import type { Informers } from "../../runtime/informers.ts";
import { createStore, type Store } from "../../runtime/store.ts";
import { createApps } from "./app.ts";
import { createShardingSource } from "./sharding/sharding-source.ts";
import { createVirtualAppSource } from "./virtual-app/virtual-app-source.ts";

const never = (error: unknown) => {
  throw error;
};

function setUp() {
  const virtual = createStore<VirtualApp>(never);
  const sharding = createStore<ShardingConfig>(never);
  const asked: string[] = [];
  const seen = <T extends VirtualApp | ShardingConfig>(store: Store<T>): Store<T> => ({
    ...store,
    list: (namespace?: string) => {
      asked.push(namespace ?? "*");
      return store.list(namespace);
    },
  });
  const store = (resource: Resource) => seen((resource.kind === SHARDING_CONFIGS.kind ? sharding : virtual) as Store<VirtualApp>);
  const apps = createApps({ store } as unknown as Informers, [createVirtualAppSource(), createShardingSource()]);
  const config = (name: string, lock: string, namespace = "ops") => {
    const object = sampleShardingConfig({ controller: { leaderElectionName: lock } });
    return { ...object, metadata: { name, namespace, uid: `uid-${name}`, resourceVersion: "1" } } as unknown as ShardingConfig;
  };
  const virtualApp = (name: string) =>
    ({ ...sampleVirtualApp(), metadata: { name, namespace: "ops", uid: name, resourceVersion: "1" } }) as unknown as VirtualApp;
  const refs = (namespace?: string) =>
    apps.list(namespace).map(({ ref, objects }) => `${ref.kind} ${ref.name} ${objects.length}`);
  return { virtual, sharding, asked, apps, config, virtualApp, refs };
}

describe("the apps of all kinds", () => {
  it("follow their objects: a family grows, shrinks and ends", () => {
    const { virtual, sharding, config, virtualApp, refs, apps } = setUp();
    virtual.replace([virtualApp("web")]);
    sharding.replace([config("a", "lock"), config("b", "lock"), config("c", "other", "dev")]);
    expect(refs("ops")).toEqual(["VirtualApp web 1", "ShardingConfig lock 2"]);
    expect(refs().sort()).toEqual(["ShardingConfig lock 2", "ShardingConfig other 1", "VirtualApp web 1"]);
    sharding.replace([config("b", "lock")]);
    expect(refs()).toEqual(["VirtualApp web 1", "ShardingConfig lock 1"]);
    expect(apps.get("other", "dev")).toBeUndefined();
    sharding.replace([]);
    virtual.replace([]);
    expect(refs()).toEqual([]);
    expect(apps.get("lock", "ops")).toBeUndefined();
  });

  it("are made once for each change of their namespace", () => {
    const { sharding, config, apps, asked } = setUp();
    sharding.replace([config("a", "lock")]);
    asked.length = 0;
    const first = apps.get("lock", "ops");
    expect(apps.get("lock", "ops")).toBe(first);
    expect(asked).toEqual(["ops", "ops"]); // once for each kind
    sharding.replace([config("a", "lock"), config("b", "other", "dev")]);
    expect(apps.get("lock", "ops")).toBe(first);
  });

  it("beyond the share of their namespace are refused with the reason, the oldest stay, and no other namespace notices", () => {
    const { virtual, apps, virtualApp } = setUp();
    const aged = (name: string, day: number, namespace = "ops") => {
      const app = virtualApp(name);
      const creationTimestamp = `2026-01-0${day}T00:00:00Z`;
      return { ...app, metadata: { ...app.metadata, namespace, uid: `${namespace}-${name}`, creationTimestamp } } as VirtualApp;
    };
    const old = Array.from({ length: 64 }, (_, at) => aged(`z${at}`, 1));
    virtual.replace([...old, aged("a", 2), aged("a", 2, "other")]);
    expect(apps.get("a", "ops")?.spec).toBeUndefined();
    expect(apps.get("a", "ops")?.problems).toEqual([expect.stringContaining("accepts at most 64 VirtualApps")]);
    expect(old.every(({ metadata }) => apps.get(metadata.name ?? "", "ops")?.spec !== undefined)).toBe(true);
    expect(apps.get("a", "other")?.spec).toBeDefined();
    virtual.replace([...old.slice(1), aged("a", 2)]);
    expect(apps.get("a", "ops")?.spec).toBeDefined();
  });

  it("do not remember namespaces without an app, which any client of the webhook can name", () => {
    const { apps, asked } = setUp();
    apps.get("x", "made-up");
    asked.length = 0;
    apps.get("x", "made-up");
    expect(asked).toEqual(["made-up", "made-up"]);
  });
});
