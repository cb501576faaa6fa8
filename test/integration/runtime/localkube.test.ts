// The whole controller runtime on localkube. A controller keeps its objects as desired through lost connections, and of two electors
// one loses its connection.
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock, systemRandom } from "../../../src/base/clock.ts";
import { silentLogger } from "../../../src/base/log.ts";
import { createKubeClient } from "../../../src/kube/client/client.ts";
import { metadataOnly } from "../../../src/kube/client/resource.ts";
import { CONFIG_MAPS, EVENTS, LEASES, NAMESPACES, PODS } from "../../../src/kube/client/resources.ts";
import type { KubeClient } from "../../../src/kube/client/types.ts";
import { isStatus } from "../../../src/kube/status.ts";
import { controllerOf, controllerRequest } from "../../../src/runtime/controller.ts";
import { createEventRecorder } from "../../../src/runtime/events.ts";
import { createInformers } from "../../../src/runtime/informers.ts";
import { createLeaderElector } from "../../../src/runtime/leader-election.ts";
import type { Reconciler } from "../../../src/runtime/reconciler.ts";
import { writeStatus } from "../../../src/runtime/status-writer.ts";
import { createLocalKube, type LocalKube } from "../../localkube/localkube.ts";
import { eventually } from "../../support/eventually.ts";

const base = { clock: systemClock, random: systemRandom, log: silentLogger() };
const closing: (() => Promise<unknown>)[] = [];
let kube: LocalKube;
let client: KubeClient;

function connect(): KubeClient {
  const created = createKubeClient({ server: kube.url, caPem: kube.caPem, token: () => kube.token, userAgent: "test" });
  closing.push(() => created.close());
  return created;
}

beforeEach(async () => {
  kube = createLocalKube();
  await kube.start(new AbortController().signal);
  closing.push(() => kube.stop());
  client = connect();
  await client.create(NAMESPACES, { metadata: { name: "a" } });
});
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** Keeps a copy "NAME-copy" of every config map, owned by it. */
function copier(store: {
  get(name: string, namespace?: string): { data?: Readonly<Record<string, string>>; metadata: { uid?: string } } | undefined;
}): Reconciler {
  return {
    async reconcile({ namespace, name }, signal) {
      const source = store.get(name, namespace);
      if (source === undefined || name.endsWith("-copy")) return {};
      const owner = { apiVersion: "v1", kind: "ConfigMap", name, uid: source.metadata.uid ?? "", controller: true };
      const desired = { metadata: { namespace, name: `${name}-copy`, ownerReferences: [owner] }, data: source.data ?? {} };
      try {
        await client.create(CONFIG_MAPS, desired, { signal });
      } catch (error) {
        if (!isStatus(error, "AlreadyExists")) throw error;
        await client.patch(CONFIG_MAPS, desired.metadata, { type: "merge", body: { data: desired.data } }, { signal });
      }
      return {};
    },
  };
}

test("a controller restores a deleted object, and works on after lost connections and an expired history", async () => {
  const informers = createInformers({ client, ...base });
  const store = informers.store(CONFIG_MAPS);
  const controller = controllerOf({ name: "copier", informers, log: base.log })
    .for(CONFIG_MAPS)
    .watches(CONFIG_MAPS, controllerRequest(CONFIG_MAPS))
    .withReconciler(copier(store));
  await informers.start(new AbortController().signal);
  await controller.start(new AbortController().signal);
  closing.push(
    () => informers.stop(),
    () => controller.stop(),
  );
  const copy = (name: string) => store.get(`${name}-copy`, "a")?.data;

  await client.create(CONFIG_MAPS, { metadata: { namespace: "a", name: "x" }, data: { k: "1" } });
  await eventually(() => expect(copy("x")).toEqual({ k: "1" }));
  await client.delete(CONFIG_MAPS, { namespace: "a", name: "x-copy" });
  await eventually(() => expect(copy("x")).toEqual({ k: "1" }));

  kube.dropConnections();
  // This client has new connections. A write on a dropped connection would fail with an unknown outcome.
  await connect().create(CONFIG_MAPS, { metadata: { namespace: "a", name: "y" }, data: { k: "2" } });
  await eventually(() => expect(copy("y")).toEqual({ k: "2" }));

  kube.dropConnections();
  kube.compact();
  await connect().patch(CONFIG_MAPS, { namespace: "a", name: "x" }, { type: "merge", body: { data: { k: "3" } } });
  await eventually(() => expect(copy("x")).toEqual({ k: "3" }));
});

test("a metadata-only store is filled in pages and follows the events", async () => {
  for (let index = 0; index < 12; index++) {
    await client.create(CONFIG_MAPS, { metadata: { namespace: "a", name: `x${index}` }, data: { big: "data" } });
  }
  const listed = await client.list(metadataOnly(CONFIG_MAPS), { namespace: "a", pageSize: 5 });
  expect(listed.items.filter(({ metadata }) => metadata.name?.startsWith("x"))).toHaveLength(12);
  expect(listed.items.every((item) => !("data" in item) && item.kind === "ConfigMap")).toBe(true);

  const informers = createInformers({ client, ...base });
  const store = informers.store(metadataOnly(CONFIG_MAPS), { namespace: "a" });
  await informers.start(new AbortController().signal);
  closing.push(() => informers.stop());
  await informers.synced;
  await client.delete(CONFIG_MAPS, { namespace: "a", name: "x3" });
  await eventually(() => expect(store.get("x3", "a")).toBeUndefined());
  expect(store.get("x4", "a")).toMatchObject({ kind: "ConfigMap", metadata: { name: "x4" } });
});

test("the second elector leads after the leader's connection is closed, and the two never lead together", async () => {
  const leading = new Set<string>();
  let most = 0;
  const contend = (identity: string, own: KubeClient) => {
    const onStartedLeading = async (signal: AbortSignal) => {
      leading.add(identity);
      most = Math.max(most, leading.size);
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      leading.delete(identity);
    };
    const times = { leaseDurationMs: 1_000, renewDeadlineMs: 600, retryPeriodMs: 100 };
    const elector = createLeaderElector({
      client: own,
      namespace: "a",
      name: "lock",
      identity,
      callbacks: { onStartedLeading },
      ...base,
      ...times,
    });
    closing.push(() => elector.stop());
    return elector;
  };
  const ownClient = connect();
  const one = contend("one", ownClient);
  await one.start(new AbortController().signal);
  await eventually(() => expect([...leading]).toEqual(["one"]));
  const two = contend("two", client);
  await two.start(new AbortController().signal);

  await ownClient.close();
  await eventually(() => expect([...leading]).toEqual(["two"]));
  expect([most, one.isLeader, two.isLeader]).toEqual([1, false, true]);
  await two.stop();
  const lease = await client.get(LEASES, { namespace: "a", name: "lock" });
  expect(lease.spec).toMatchObject({ holderIdentity: "", leaseDurationSeconds: 1 });
});

test("a status is written although the object has changed meanwhile, and an event about the object is recorded", async () => {
  const stale = await client.create(PODS, {
    metadata: { namespace: "a", name: "x" },
    spec: { containers: [{ name: "c", image: "i" }] },
  });
  await client.patch(PODS, { namespace: "a", name: "x" }, { type: "merge", body: { metadata: { labels: { l: "1" } } } });
  const written = await writeStatus(client, PODS, stale, ({ status }) => ({ ...status, phase: "Running", podIP: "10.0.0.1" }));
  expect(written).toMatchObject({ metadata: { labels: { l: "1" } }, status: { phase: "Running", podIP: "10.0.0.1" } });

  const recorder = createEventRecorder({ client, component: "test", ...base });
  recorder.event(stale, "Normal", "Started", "it runs");
  await recorder.stop();
  const { items } = await client.list(EVENTS, { namespace: "a" });
  expect(items).toMatchObject([{ reason: "Started", involvedObject: { kind: "Pod", name: "x" } }]);
});
