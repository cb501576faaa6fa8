import { beforeEach, describe, expect, it } from "vitest";
import { createFakeClock, type FakeClock } from "../../../../test/support/fake-clock.ts";
import { createFakeKubeClient, type FakeKubeClient } from "../../../../test/support/fake-kube-client.ts";
import { sampleVirtualApp } from "../../../../test/support/virtual-app.ts";
import { VIRTUAL_APPS } from "../../../api/resources.ts";
import type { VirtualApp } from "../../../api/virtual-app.ts";
import type { MutatingWebhookConfiguration } from "../../../kube/client/resources.ts";
import type { Reconciler } from "../../../runtime/reconciler.ts";
import { injectionConfiguration } from "../../admission/configurations.ts";
import { createInjectionStatusReconciler } from "./reconciler.ts";

const REF = { namespace: "ops", name: "shop" };
const TARGET = { namespace: "ctrlmesh-system", serviceName: "ctrlmesh-manager", url: "" };

describe("the condition InjectionReady", () => {
  let clock: FakeClock;
  let client: FakeKubeClient;
  let configuration: MutatingWebhookConfiguration | undefined;
  let reconciler: Reconciler;
  const size = { isTooLarge: false };

  beforeEach(() => {
    clock = createFakeClock();
    client = createFakeKubeClient();
    configuration = undefined;
    put();
    begin();
  });

  const begin = () => {
    reconciler = createInjectionStatusReconciler({
      ...{ client, clock, target: TARGET, size },
      apps: { get: () => app() },
      mutating: { get: () => configuration },
    });
  };
  const app = () => client.read(VIRTUAL_APPS, REF);
  const put = (more: object = {}, generation = 1) =>
    client.put(VIRTUAL_APPS, { ...sampleVirtualApp(), metadata: { ...REF, generation }, ...more } as unknown as VirtualApp);
  const write = (trustPem = "PEM") => {
    configuration = injectionConfiguration([app() as VirtualApp], TARGET, trustPem);
  };
  const run = () => reconciler.reconcile(REF, new AbortController().signal);
  const condition = () => app()?.status?.conditions?.find(({ type }) => type === "InjectionReady");
  const patches = () => client.calls.filter(({ verb }) => verb === "patch").length;

  it("is False until the API server has shown the entry for a second", async () => {
    await run();
    expect(condition()).toMatchObject({ status: "False", reason: "WebhookPending", observedGeneration: 1 });
    write();
    expect(await run()).toEqual({ requeueAfterMs: 1_000 });
    expect(condition()?.status).toBe("False");
    await clock.advance(1_000);
    expect(await run()).toEqual({});
    expect(condition()).toMatchObject({ status: "True", reason: "InForce" });
    expect(patches()).toBe(2);
  });

  it("says that the entry cannot be stored, and asks again until it can", async () => {
    size.isTooLarge = true;
    expect(await run()).toEqual({ requeueAfterMs: 5_000 });
    expect(condition()).toMatchObject({ status: "False", reason: "WebhookTooLarge" });
    size.isTooLarge = false;
    await run();
    expect(condition()).toMatchObject({ reason: "WebhookPending" });
  });

  it("stays True through a new bundle, and is False again when the entry is gone or another one", async () => {
    write();
    await run();
    await clock.advance(1_000);
    await run();
    write("OTHER");
    await run();
    expect(condition()?.status).toBe("True");
    const [early, entry] = configuration?.webhooks ?? [];
    configuration = { metadata: {}, webhooks: [early, { ...entry, failurePolicy: "Ignore" }] as never };
    await run();
    await clock.advance(1_000);
    await run();
    expect(condition()).toMatchObject({ status: "False", reason: "WebhookPending" });
    configuration = undefined;
    await run();
    expect(condition()?.status).toBe("False");
  });

  it("is not taken back by a manager that has just begun", async () => {
    write();
    await run();
    await clock.advance(1_000);
    await run();
    begin();
    expect(await run()).toEqual({ requeueAfterMs: 1_000 });
    expect(condition()?.status).toBe("True");
    await clock.advance(1_000);
    await run();
    expect(patches()).toBe(2);
  });

  it("leaves the rest of the status as it is, and keeps its place among the conditions", async () => {
    const other = (type: string) => ({
      type,
      status: "True",
      reason: "X",
      message: "x",
      lastTransitionTime: "2026-01-01T00:00:00Z",
    });
    const status = {
      routeVersion: 3,
      conditions: [other("Ready"), { ...other("InjectionReady"), status: "False" }, other("Stalled")],
    };
    put({ status });
    await run();
    expect(app()?.status).toMatchObject({
      routeVersion: 3,
      conditions: [other("Ready"), { reason: "WebhookPending" }, other("Stalled")],
    });
  });

  it("says why there is none: the manager's namespace, a bad spec, an app that goes", async () => {
    put({ spec: { selector: {} } });
    await run();
    expect(condition()?.reason).toBe("Invalid");
    put({ metadata: { ...REF, generation: 2, deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: ["x"] } });
    await run();
    expect(condition()).toMatchObject({ reason: "Dissolving", observedGeneration: 2 });
  });
});
