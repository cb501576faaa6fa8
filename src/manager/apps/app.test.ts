import { describe, expect, it } from "vitest";
import { sampleShardingConfig } from "../../../test/support/sharding-config.ts";
import { sampleVirtualApp } from "../../../test/support/virtual-app.ts";
import { SHARDING_CONFIGS } from "../../api/resources.ts";
import type { ShardingConfig } from "../../api/sharding-config.ts";
import { type VirtualApp, validateVirtualApp } from "../../api/virtual-app.ts";
import { collectGarbage } from "../../base/collect-garbage.ts";
import type { Resource } from "../../kube/client/resource.ts";
import type { Informers } from "../../runtime/informers.ts";
import { createStore, type Store } from "../../runtime/store.ts";
import { createShardingSource } from "../sharding/sharding-source.ts";
import { createVirtualAppSource } from "../virtual-app/virtual-app-source.ts";
import { createApps } from "./app.ts";

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
  const checks = { count: 0 };
  const check: typeof validateVirtualApp = (object) => {
    checks.count++;
    return validateVirtualApp(object);
  };
  const store = (resource: Resource) => seen((resource.kind === SHARDING_CONFIGS.kind ? sharding : virtual) as Store<VirtualApp>);
  const apps = createApps({ store } as unknown as Informers, [createVirtualAppSource(check), createShardingSource()]);
  const config = (name: string, lock: string, namespace = "ops") => {
    const object = sampleShardingConfig({ controller: { leaderElectionName: lock } });
    return { ...object, metadata: { name, namespace, uid: `uid-${name}`, resourceVersion: "1" } } as unknown as ShardingConfig;
  };
  const virtualApp = (name: string) =>
    ({ ...sampleVirtualApp(), metadata: { name, namespace: "ops", uid: name, resourceVersion: "1" } }) as unknown as VirtualApp;
  const refs = (namespace?: string) =>
    apps.list(namespace).map(({ ref, objects }) => `${ref.kind} ${ref.name} ${objects.length}`);
  return { virtual, sharding, asked, checks, apps, config, virtualApp, refs };
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

  it("beyond the share of their namespace are not checked, so refused specs cost no time", () => {
    const { virtual, apps, virtualApp, checks } = setUp();
    virtual.replace(Array.from({ length: 65 }, (_, at) => virtualApp(`a${String(at).padStart(2, "0")}`)));
    expect(apps.list("ops").filter(({ spec }) => spec === undefined)).toHaveLength(1);
    expect(checks.count).toBe(64);
  });

  it("are checked once for each spec, whatever changes beside it", () => {
    const { virtual, apps, virtualApp, checks } = setUp();
    const version = (resourceVersion: number, generation: number, labels: Record<string, string> = {}) => {
      const app = virtualApp("web");
      return {
        ...app,
        metadata: { ...app.metadata, resourceVersion: String(resourceVersion), generation, labels },
      } as VirtualApp;
    };
    const specAfter = (object: VirtualApp) => {
      virtual.upsert(object);
      return apps.get("web", "ops")?.spec;
    };
    const first = specAfter(version(1, 1));
    expect(specAfter(version(2, 1, { color: "red" }))).toBe(first);
    virtual.upsert(version(3, 1, { color: "blue" }));
    expect(specAfter(version(4, 1))).toBe(first);
    expect(checks.count).toBe(1);
    expect(specAfter(version(5, 2))).not.toBe(first);
    expect(checks.count).toBe(2);
    virtual.replace([]);
    expect(specAfter(version(6, 2))).toBeDefined();
    expect(checks.count).toBe(3);
  });

  it("leave nothing behind when they are deleted, so creating and deleting one again and again takes no memory", () => {
    const { virtual, apps, virtualApp } = setUp();
    const match = Array.from({ length: 32 }, (_, at) => ({ namespaceSelector: { matchLabels: { team: `team-${at}` } } }));
    const subRules = Array.from({ length: 32 }, (_, at) => ({ name: `rule-${at}`, match }));
    const createAndDelete = (at: number) => {
      const { spec } = sampleVirtualApp({ route: { subRules }, subsets: [] });
      const app = virtualApp("web");
      virtual.upsert({ ...app, spec, metadata: { ...app.metadata, uid: `uid-${at}`, generation: 1 } } as unknown as VirtualApp);
      expect(apps.get("web", "ops")?.problems).toEqual([]);
      virtual.replace([]);
      apps.list("ops");
    };
    for (let at = 0; at < 3; at++) createAndDelete(at);
    collectGarbage();
    const before = process.memoryUsage().heapUsed;
    for (let at = 3; at < 33; at++) createAndDelete(at);
    collectGarbage();
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(1_000_000);
  });

  it("do not remember namespaces without an app, which any client of the webhook can name", () => {
    const { apps, asked } = setUp();
    apps.get("x", "made-up");
    asked.length = 0;
    apps.get("x", "made-up");
    expect(asked).toEqual(["made-up", "made-up"]);
  });
});
