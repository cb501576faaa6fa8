import { beforeEach, describe, expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createFakeKubeClient } from "../../../test/support/fake-kube-client.ts";
import { appsIn } from "../../../test/support/source-apps.ts";
import type { VirtualApp } from "../../api/virtual-app.ts";
import { silentLogger } from "../../base/log.ts";
import { PODS } from "../../kube/client/resources.ts";
import { createInformers } from "../../runtime/informers.ts";
import { createStore } from "../../runtime/store.ts";
import type { Apps } from "../apps/app.ts";
import { createPodWatch } from "./pod-watch.ts";

const app = (namespace: string, name: string): VirtualApp => ({
  apiVersion: "ctrlmesh.kruise.io/v1alpha1",
  kind: "VirtualApp",
  metadata: { namespace, name },
  spec: { selector: { matchLabels: { app: "op" } }, configuration: { controller: { leaderElectionName: "lock" } } },
});

function setUp() {
  const clock = createFakeClock();
  const client = createFakeKubeClient();
  const log = silentLogger();
  const informers = createInformers({ client, clock, random: () => 0, log });
  const apps = createStore<VirtualApp>((error) => {
    throw error;
  });
  const watch = createPodWatch({ informers, apps: appsIn(apps), log });
  const seen: string[] = [];
  watch.onChange(({ type, object }) => seen.push(`${type} ${object.metadata.namespace}/${object.metadata.name}`));
  watch.onListed((namespace) => seen.push(`listed ${namespace}`));
  watch.onLeft((namespace) => seen.push(`left ${namespace}`));
  return { clock, client, informers, apps, watch, seen };
}

let world: ReturnType<typeof setUp>;
beforeEach(async () => {
  world = setUp();
  await world.informers.start(new AbortController().signal);
  for (const namespace of ["shop", "elsewhere"]) world.client.put(PODS, { metadata: { namespace, name: "p" } });
});

describe("the pods that are watched", () => {
  it("are those of namespaces with a VirtualApp; other namespaces cause no requests", async () => {
    const { watch, apps, client, clock, seen } = world;
    await watch.start(new AbortController().signal);
    apps.upsert(app("shop", "one"));
    await clock.flush();
    expect(watch.list("shop")?.map(({ metadata }) => metadata.name)).toEqual(["p"]);
    expect(watch.get("p", "shop")).toBeDefined();
    expect([watch.list("elsewhere"), watch.get("p", "elsewhere")]).toEqual([undefined, undefined]);
    client.put(PODS, { metadata: { namespace: "elsewhere", name: "q" } });
    client.put(PODS, { metadata: { namespace: "shop", name: "q" } });
    await clock.flush();
    expect(seen).toEqual(["added shop/p", "listed shop", "added shop/q"]);
    expect(client.calls.filter(({ verb }) => verb === "list")).toHaveLength(1);
  });
  it("are undefined, not an empty list, until they have been listed", async () => {
    const { watch, apps, client, clock } = world;
    let answer = () => undefined as undefined | Promise<void>;
    const held = Promise.withResolvers<void>();
    client.before = () => answer();
    answer = () => held.promise;
    apps.upsert(app("shop", "one"));
    await watch.start(new AbortController().signal);
    await clock.flush();
    expect([watch.list("shop"), watch.get("p", "shop")]).toEqual([undefined, undefined]);
    held.resolve();
    await clock.flush();
    expect(watch.list("shop")).toHaveLength(1);
  });
  it("are no longer watched after the last VirtualApp of the namespace, and listed again with the next", async () => {
    const { watch, apps, client, clock, seen } = world;
    await watch.start(new AbortController().signal);
    apps.upsert(app("shop", "one"));
    apps.upsert(app("shop", "two"));
    await clock.flush();
    apps.remove(app("shop", "one"));
    expect(watch.list("shop")).toHaveLength(1);
    apps.remove(app("shop", "two"));
    expect(watch.list("shop")).toBeUndefined();
    client.remove(PODS, { namespace: "shop", name: "p" });
    await clock.flush();
    apps.upsert(app("shop", "three"));
    expect(watch.list("shop")).toBeUndefined();
    await clock.flush();
    expect(watch.list("shop")).toEqual([]);
    expect(seen).toEqual(["added shop/p", "listed shop", "left shop", "listed shop"]);
  });
  it("are watched while one of two apps with the same name and different kinds exists", async () => {
    const { informers, clock } = world;
    let handler: Parameters<Apps["onChange"]>[0] = () => undefined;
    const onChange: Apps["onChange"] = (given) => {
      handler = given;
      return () => undefined;
    };
    const watch = createPodWatch({ informers, apps: { onChange }, log: silentLogger() });
    await watch.start(new AbortController().signal);
    for (const kind of ["VirtualApp", "ShardingConfig"]) handler({ type: "added", object: app("shop", "one") }, kind);
    await clock.flush();
    handler({ type: "deleted", object: app("shop", "one") }, "ShardingConfig");
    expect(watch.list("shop")).toHaveLength(1);
    await watch.stop();
  });
  it("are not listed before the watch starts, because an earlier leader may still serve new pods", async () => {
    const { watch, apps, client, clock } = world;
    apps.upsert(app("shop", "one"));
    await clock.flush();
    expect(client.calls).toEqual([]);
    await watch.start(new AbortController().signal);
    await clock.flush();
    expect(watch.list("shop")).toHaveLength(1);
    await watch.stop();
    expect(watch.list("shop")).toBeUndefined();
    expect(clock.pending).toBe(0);
  });
});
