// A namespace moves from a running pod to another subset, and the pod retains it read-only until its restart. Two informers
// connect to localkube through the real proxy. They see no object deleted and do not list again, and the proxy refuses the pod's writes.

import { readFile } from "node:fs/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock, systemRandom } from "../../../src/base/clock.ts";
import { silentLogger } from "../../../src/base/log.ts";
import { createRegistry } from "../../../src/base/metrics.ts";
import { createKubeClient } from "../../../src/kube/client/client.ts";
import { CONFIG_MAPS, NAMESPACES } from "../../../src/kube/client/resources.ts";
import type { KubeClient } from "../../../src/kube/client/types.ts";
import { isolate } from "../../../src/proxy/outbound/isolate/isolate.ts";
import { createEnforcer } from "../../../src/proxy/session/enforcer.ts";
import { createReflector } from "../../../src/runtime/reflector.ts";
import { createLocalKube, type LocalKube } from "../../localkube/localkube.ts";
import { eventually } from "../../support/eventually.ts";
import { isolateDeps } from "../../support/isolate.ts";
import { startProxy } from "../../support/proxy-harness.ts";
import { type Routes, routes } from "../../support/test-routes.ts";

const OWNED: Routes = { blue: ["a", "n"], defaultSubset: ["b"] };
const RETAINED: Routes = { blue: ["a"], defaultSubset: ["b", "n"], retained: ["n"] };
const MOVING_BACK: Routes = { ...OWNED, fenced: ["n"], retained: ["n"] };
const LOST: Routes = { blue: ["a"], defaultSubset: ["b", "n"] };

const closing: (() => Promise<unknown>)[] = [];
let kube: LocalKube;
let admin: KubeClient;

beforeEach(async () => {
  kube = createLocalKube();
  await kube.start(new AbortController().signal);
  closing.push(() => kube.stop());
  admin = createKubeClient({ server: kube.url, caPem: kube.caPem, token: () => kube.token, userAgent: "admin" });
  closing.push(() => admin.close());
  for (const name of ["a", "b", "n"]) {
    await admin.create(NAMESPACES, { metadata: { name } });
    await admin.create(CONFIG_MAPS, { metadata: { namespace: name, name: "first" } });
  }
});
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** Starts the proxy of a pod of subset blue, and a client that connects through it. */
async function startPod(userAgent: string, first: Routes) {
  const session = createEnforcer();
  let version = 1;
  const enforce = (next: Routes) => session.enforce(routes(version++, next));
  enforce(first);
  const discovery = { scopeOf: async () => "namespaced" as const };
  const registry = createRegistry("proxy", "test");
  const layer = isolate(isolateDeps({ session, discovery, clock: systemClock, random: systemRandom, registry }));
  const api = { url: kube.url, ca: { certPem: kube.caPem }, open: 0 };
  const proxy = await startProxy({ api, isolate: layer });
  closing.push(() => proxy.stop());
  const caPem = await readFile(proxy.ready.ca, "utf8");
  const client = createKubeClient({ server: proxy.ready.url, caPem, token: () => kube.token, userAgent }, { maxRetries: 0 });
  closing.push(() => client.close());
  return { session, enforce, client };
}

/** Starts an informer, and records the changes that it reports to its operator. */
async function startInformer(client: KubeClient, namespace?: string) {
  const reflector = createReflector({
    client,
    resource: CONFIG_MAPS,
    ...(namespace === undefined ? {} : { selectors: { namespace } }),
    clock: systemClock,
    random: systemRandom,
    log: silentLogger(),
  });
  const changes: string[] = [];
  reflector.store.onChange(({ type, object: { metadata } }) => changes.push(`${type} ${metadata.namespace}/${metadata.name}`));
  await reflector.start(new AbortController().signal);
  closing.push(() => reflector.stop());
  await reflector.store.synced;
  return { changes, names: () => reflector.store.list().map(({ metadata }) => `${metadata.namespace}/${metadata.name}`) };
}

const listsAndWatches = (userAgent: string) => {
  const entries = kube.audit().filter((entry) => entry.userAgent === userAgent);
  return entries.filter(({ verb }) => verb === "list" || verb === "watch").map(({ verb }) => verb);
};
const map = (name: string, data = "1") => ({ metadata: { namespace: "n", name }, data: { data } });

describe("a namespace that is retained read-only", () => {
  it("stays in the pod's informers with all its events, and the pod's writes there are refused at once", async () => {
    const { enforce, client } = await startPod("old-pod", OWNED);
    const informers = [await startInformer(client), await startInformer(client, "n")] as const;
    let count = 0;
    const expectEvent = async () => {
      const name = `later-${count++}`;
      await admin.create(CONFIG_MAPS, map(name));
      for (const { names } of informers) await eventually(() => names().includes(`n/${name}`));
    };
    const write = () => client.update(CONFIG_MAPS, map("first", String(count)));
    await expectEvent();
    await write();

    enforce(RETAINED);
    await expect(write()).rejects.toMatchObject({
      status: { code: 403, message: expect.stringContaining("until it is restarted") },
    });
    await expect(client.delete(CONFIG_MAPS, { namespace: "n", name: "first" })).rejects.toMatchObject({ status: { code: 403 } });
    await expectEvent();
    expect(await client.get(CONFIG_MAPS, { namespace: "n", name: "first" })).toMatchObject({ data: { data: "1" } });
    expect((await client.list(CONFIG_MAPS, {})).items).toHaveLength(4); // two that were created in n later, and the first of a and of n

    // The change is undone: the old owner gets the namespace back after the new owner has given it up.
    enforce(MOVING_BACK);
    await expect(write()).rejects.toMatchObject({ status: { code: 503, details: { retryAfterSeconds: 1 } } });
    await expectEvent();
    enforce(OWNED);
    await expectEvent();
    await write();

    for (const { changes } of informers) expect(changes.filter((change) => change.startsWith("deleted"))).toEqual([]);
    expect(listsAndWatches("old-pod").sort()).toEqual(["list", "list", "list", "watch", "watch"]); // the test itself made one of the lists
  });

  it("is hidden from the pod's replacement, and leaves the informers of the old pod once that pod no longer retains it", async () => {
    const old = await startPod("old-pod", OWNED);
    const informer = await startInformer(old.client);
    old.enforce(RETAINED);
    const fresh = await startPod("new-pod", LOST);
    const other = await startInformer(fresh.client);
    expect([informer.names().sort(), other.names()]).toEqual([["a/first", "n/first"], ["a/first"]]);
    await expect(fresh.client.get(CONFIG_MAPS, { namespace: "n", name: "first" })).rejects.toMatchObject({
      status: { code: 403 },
    });

    old.enforce(LOST);
    await eventually(() => informer.changes.includes("deleted n/first"));
    expect(informer.names()).toEqual(["a/first"]);
  });
});
