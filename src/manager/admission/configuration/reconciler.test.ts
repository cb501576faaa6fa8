import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createFakeClock, type FakeClock } from "../../../../test/support/fake-clock.ts";
import { createFakeIdentity } from "../../../../test/support/fake-identity.ts";
import { createFakeKubeClient, type FakeKubeClient } from "../../../../test/support/fake-kube-client.ts";
import { sampleVirtualApp } from "../../../../test/support/virtual-app.ts";
import { VIRTUAL_APPS } from "../../../api/resources.ts";
import type { VirtualApp } from "../../../api/virtual-app.ts";
import { createLogger } from "../../../base/log.ts";
import { createRegistry } from "../../../base/metrics.ts";
import { MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS } from "../../../kube/client/resources.ts";
import { StatusError } from "../../../kube/status.ts";
import type { Controller } from "../../../runtime/controller.ts";
import { createControllerMetrics } from "../../../runtime/controller-metrics.ts";
import { createInformers, type Informers } from "../../../runtime/informers.ts";
import { createApps } from "../../apps/app.ts";
import { createVirtualAppSource } from "../../virtual-app/virtual-app-source.ts";
import { addWebhookConfigurationController } from "./add.ts";
import { MUTATING_NAME, VALIDATING_NAME } from "./configurations.ts";

describe("the webhook configurations", () => {
  const log = createLogger({ name: "test", level: "silent" });
  let clock: FakeClock;
  let client: FakeKubeClient;
  let identity: ReturnType<typeof createFakeIdentity>;
  let informers: Informers;
  let controller: Controller;
  let size: { isTooLarge: boolean };

  beforeEach(async () => {
    clock = createFakeClock();
    size = { isTooLarge: false };
    client = createFakeKubeClient();
    identity = createFakeIdentity();
    informers = createInformers({ client, clock, random: () => 0.5, log });
    const target = { namespace: "ctrlmesh-system", serviceName: "ctrlmesh-manager", url: "", timeoutSeconds: 10 };
    const metrics = createControllerMetrics(createRegistry("test", "0"));
    const sources = [createVirtualAppSource()];
    const apps = createApps(informers, sources);
    const options = { client, informers, sources, apps, identity, target, size, log, metrics, clock };
    controller = addWebhookConfigurationController(options);
    const { signal } = new AbortController();
    await informers.start(signal);
    await controller.start(signal);
    await settle();
  });
  afterEach(async () => {
    await controller.stop();
    await informers.stop();
  });

  const settle = () => clock.advance(1_000);
  const app = (name: string, more: object = {}) =>
    ({ ...sampleVirtualApp(), metadata: { namespace: "ops", name, generation: 1 }, ...more }) as unknown as VirtualApp;
  const mutating = () => client.read(MUTATING_WEBHOOK_CONFIGURATIONS, { name: MUTATING_NAME });
  const validating = () => client.read(VALIDATING_WEBHOOK_CONFIGURATIONS, { name: VALIDATING_NAME });
  const injections = () => (mutating()?.webhooks ?? []).slice(1);
  const names = () => injections().map(({ name }) => name.split(".")[0]);
  const bundle = () => Buffer.from(mutating()?.webhooks?.[0]?.clientConfig.caBundle ?? "", "base64").toString();
  const writes = () => client.calls.filter(({ verb }) => verb === "create" || verb === "patch").length;

  it("are also created without a VirtualApp, and not written again while nothing changes", async () => {
    expect(names()).toEqual([]);
    expect(validating()?.webhooks).toHaveLength(3);
    expect(writes()).toBe(2);
    controller.enqueue({ namespace: "", name: "webhooks" });
    await settle();
    expect(writes()).toBe(2);
  });

  it("send apps and policies to the validation", () => {
    const checked = validating()?.webhooks?.[0]?.rules?.flatMap(({ resources }) => resources ?? []);
    expect(checked).toEqual(["virtualapps", "meshclusters", "trafficpolicies", "circuitbreakers", "faultinjections"]);
  });

  it("follow the apps: one is added, one is removed, one is in deletion", async () => {
    client.put(VIRTUAL_APPS, app("shop"));
    client.put(VIRTUAL_APPS, app("foo"));
    await settle();
    expect(names()).toEqual(["foo", "shop"]);
    expect(writes()).toBe(4); // both apps in one write of each object
    client.put(
      VIRTUAL_APPS,
      app("foo", { metadata: { namespace: "ops", name: "foo", deletionTimestamp: "2026-01-01T00:00:00Z" } }),
    );
    await settle();
    expect(names()).toEqual(["shop"]);
    client.remove(VIRTUAL_APPS, { namespace: "ops", name: "shop" });
    await settle();
    expect(names()).toEqual([]);
  });

  it("are not written after a change of a status", async () => {
    client.put(VIRTUAL_APPS, app("shop", { status: { routeVersion: 1 } }));
    await settle();
    const before = writes();
    client.put(VIRTUAL_APPS, app("shop", { status: { routeVersion: 2 } }));
    await settle();
    expect(writes()).toBe(before);
  });

  it("contain a new CA beside the old CA at once, and lose the old CA when it is no longer trusted", async () => {
    client.put(VIRTUAL_APPS, app("shop"));
    await settle();
    const [first] = [bundle()];
    expect(first).toBe(identity.trustPem);
    identity.addCa();
    await settle();
    expect(bundle()).toBe(identity.trustPem);
    expect(bundle().startsWith(first)).toBe(true);
    const ofValidation = validating()?.webhooks?.[0]?.clientConfig.caBundle ?? "";
    expect(Buffer.from(ofValidation, "base64").toString()).toBe(identity.trustPem);
    identity.dropOldCas();
    await settle();
    expect(bundle()).toBe(identity.trustPem);
    expect(bundle()).not.toContain(first);
  });

  it("are restored when somebody edits them, except for labels and annotations of others", async () => {
    client.put(VIRTUAL_APPS, app("shop"));
    await settle();
    const webhooks = mutating()?.webhooks ?? [];
    client.put(MUTATING_WEBHOOK_CONFIGURATIONS, {
      metadata: { name: MUTATING_NAME, labels: { theirs: "x" }, annotations: { note: "y" } },
      webhooks: webhooks.map((webhook) => ({ ...webhook, failurePolicy: "Ignore" as const })),
    });
    await settle();
    expect(mutating()?.webhooks).toEqual(webhooks);
    expect(mutating()?.metadata.labels).toMatchObject({ theirs: "x", "admissions.enforcer/disabled": "true" });
    expect(mutating()?.metadata.annotations).toEqual({ note: "y" });
  });

  it("are restored only once a second if somebody edits them repeatedly", async () => {
    client.put(VIRTUAL_APPS, app("shop"));
    await settle();
    const webhooks = mutating()?.webhooks ?? [];
    const before = writes();
    for (let round = 0; round < 100; round++) {
      const theirs = webhooks.map((webhook) => ({ ...webhook, failurePolicy: "Ignore" as const }));
      client.put(MUTATING_WEBHOOK_CONFIGURATIONS, { metadata: { name: MUTATING_NAME }, webhooks: theirs });
      await clock.advance(100);
    }
    expect(writes() - before).toBeLessThanOrEqual(22); // ten at once, then one a second
    await clock.advance(20_000);
    expect(mutating()?.webhooks).toEqual(webhooks);
  });

  it("are created again when somebody deletes them", async () => {
    client.put(VIRTUAL_APPS, app("shop"));
    await settle();
    client.remove(MUTATING_WEBHOOK_CONFIGURATIONS, { name: MUTATING_NAME });
    client.remove(VALIDATING_WEBHOOK_CONFIGURATIONS, { name: VALIDATING_NAME });
    await settle();
    expect(names()).toEqual(["shop"]);
    expect(validating()?.webhooks).toHaveLength(4);
  });

  it("are each written even if the write of the other fails", async () => {
    client.before = ({ resource, verb }) => {
      if (verb === "patch" && resource === "mutatingwebhookconfigurations") throw new Error("not allowed");
    };
    identity.addCa();
    await settle();
    const caBundle = validating()?.webhooks?.[0]?.clientConfig.caBundle ?? "";
    expect(Buffer.from(caBundle, "base64").toString()).toBe(identity.trustPem);
  });

  it.each([
    "etcdserver: request is too large",
    "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2097312 vs. 2097152)",
  ])("are known to be too large by %s, until they are written", async (message) => {
    client.before = ({ verb }) => {
      if (verb === "patch") throw new StatusError("InternalError", message);
    };
    client.put(VIRTUAL_APPS, app("shop"));
    await settle();
    expect(size.isTooLarge).toBe(true);
    client.before = () => undefined;
    await clock.advance(10_000);
    expect(names()).toEqual(["shop"]);
    expect(size.isTooLarge).toBe(false);
  });

  it("stay when the manager stops", async () => {
    client.put(VIRTUAL_APPS, app("shop"));
    await settle();
    await controller.stop();
    expect(names()).toEqual(["shop"]);
  });
});
