import { expect, test } from "vitest";
import { createFakeClock } from "../../test/support/fake-clock.ts";
import { createFakeKubeClient } from "../../test/support/fake-kube-client.ts";
import { silentLogger } from "../base/log.ts";
import { metadataOnly } from "../kube/client/resource.ts";
import { NAMESPACES, PODS } from "../kube/client/resources.ts";
import { createInformers } from "./informers.ts";

function setUp() {
  const clock = createFakeClock();
  const client = createFakeKubeClient();
  const informers = createInformers({ client, clock, random: () => 0, log: silentLogger() });
  return { clock, client, informers, lists: () => client.calls.filter(({ verb }) => verb === "list").length };
}

test("the same kind with the same selectors has one store, and every other combination has another store", () => {
  const { informers } = setUp();
  const pods = informers.store(PODS, { labelSelector: "a=1" });
  expect(informers.store(PODS, { labelSelector: "a=1", namespace: "" })).toBe(pods);
  expect(informers.store(PODS)).not.toBe(pods);
  expect(informers.store(metadataOnly(PODS), { labelSelector: "a=1" })).not.toBe(pods);
});

test("stores requested before and after the start run and sync", async () => {
  const { informers, clock, lists } = setUp();
  const pods = informers.store(PODS);
  await informers.start(new AbortController().signal);
  const namespaces = informers.store(NAMESPACES);
  await clock.flush();
  expect([pods.hasSynced, namespaces.hasSynced, lists()]).toEqual([true, true, 2]);
  await informers.synced;
  await informers.stop();
});

test("the last release stops the reflector, and the next acquire creates a new one", async () => {
  const { informers, clock, client, lists } = setUp();
  await informers.start(new AbortController().signal);
  const one = informers.acquire(PODS);
  const two = informers.acquire(PODS);
  await one.release();
  await one.release();
  client.put(PODS, { metadata: { namespace: "a", name: "x" } });
  await clock.flush();
  expect(two.store.size).toBe(1);
  await two.release();
  const three = informers.acquire(PODS);
  await clock.flush();
  expect(three.store).not.toBe(two.store);
  expect([three.store.size, lists()]).toEqual([1, 2]);
  await informers.stop();
  expect(clock.pending).toBe(0);
});
