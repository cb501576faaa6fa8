import { beforeEach, describe, expect, it } from "vitest";
import { createFakeClock, type FakeClock } from "../../../../test/support/fake-clock.ts";
import { appOf } from "../../../../test/support/source-apps.ts";
import { sampleVirtualApp } from "../../../../test/support/virtual-app.ts";
import type { Condition } from "../../../api/conditions.ts";
import type { MutatingWebhookConfiguration } from "../../../kube/client/resources.ts";
import type { App } from "../../apps/app.ts";
import { injectionConfiguration } from "./configurations.ts";
import { createInjectionReady, type InjectionReady } from "./injection-ready.ts";

const REF = { namespace: "ops", name: "shop" };
const TARGET = { namespace: "ctrlmesh-system", serviceName: "ctrlmesh-manager", url: "", timeoutSeconds: 10 };

describe("the condition InjectionReady", () => {
  let clock: FakeClock;
  let configuration: MutatingWebhookConfiguration | undefined;
  let injection: InjectionReady;
  let said: Condition | undefined;
  let app: App;
  let others: App[];
  const size = { isTooLarge: false };

  beforeEach(() => {
    clock = createFakeClock();
    configuration = undefined;
    said = undefined;
    app = sample();
    others = [];
    begin();
  });

  const begin = () => {
    injection = createInjectionReady({
      clock,
      target: TARGET,
      size,
      mutating: { hasSynced: true, get: () => configuration },
      apps: { list: () => [app, ...others] },
    });
  };
  const sample = (more: object = {}, metadata: object = {}) =>
    appOf({ ...sampleVirtualApp(), metadata: { ...REF, generation: 1, ...metadata }, ...more });
  const write = (trustPem = "PEM") => {
    configuration = injectionConfiguration({ kinds: [], apps: [app], target: TARGET, trustPem });
  };
  /** Calls `look` once, and returns the result. */
  const look = () => {
    const { verdict, againMs } = injection.look(app, said);
    const { generation = 0 } = app.object.metadata;
    const common = { type: "InjectionReady", observedGeneration: generation, lastTransitionTime: "2026-01-01T00:00:00Z" };
    if (verdict !== undefined) said = { ...common, ...verdict };
    return { reason: said?.reason, againMs };
  };

  it("is False until the API server has returned the entry for a second", async () => {
    expect(look()).toEqual({ reason: "WebhookPending", againMs: 5_000 });
    write();
    expect(injection.hasChanged(REF as App["ref"])).toBe(true);
    expect(look()).toEqual({ reason: "WebhookPending", againMs: 1_000 });
    expect(injection.hasChanged(REF as App["ref"])).toBe(false);
    await clock.advance(1_000);
    expect(look()).toEqual({ reason: "InForce", againMs: undefined });
    expect(said?.status).toBe("True");
  });

  it("reports that the entry cannot be stored, and checks again until it can", () => {
    size.isTooLarge = true;
    expect(look()).toEqual({ reason: "WebhookTooLarge", againMs: 5_000 });
    size.isTooLarge = false;
    expect(look().reason).toBe("WebhookPending");
  });

  it("says that the namespace has too many apps, or that the selector is too long for the entry", async () => {
    others = Array.from({ length: 64 }, (_, index) =>
      appOf({ ...sampleVirtualApp(), metadata: { namespace: "ops", name: `a-${index}` } }),
    );
    expect(look().reason).toBe("WebhookTooLarge");
    expect(said?.message).toMatch(/64 oldest of namespace ops/);
    others = [];
    const values = Array.from({ length: 128 }, (_, index) => `${index}`.padEnd(63, "x"));
    const selector = { matchExpressions: [{ key: "k", operator: "In", values }] };
    app = appOf({ ...sampleVirtualApp({ selector }), metadata: { ...REF, generation: 1 } });
    write();
    look();
    await clock.advance(1_000);
    expect(look().reason).toBe("InForce");
    expect(said?.message).toMatch(/longer than the webhook's entry has room for/);
  });

  it("stays True during a change of the CA bundle, and is False again when the entry is gone or differs", async () => {
    write();
    look();
    await clock.advance(1_000);
    look();
    write("OTHER");
    expect(look().reason).toBe("InForce");
    const [early, entry] = configuration?.webhooks ?? [];
    configuration = { metadata: {}, webhooks: [early, { ...entry, failurePolicy: "Ignore" }] as never };
    look();
    await clock.advance(1_000);
    expect(look().reason).toBe("WebhookPending");
    configuration = undefined;
    expect(look().reason).toBe("WebhookPending");
  });

  it("is not revoked by a new manager", async () => {
    write();
    look();
    await clock.advance(1_000);
    look();
    begin();
    expect(injection.look(app, said)).toEqual({ verdict: undefined, againMs: 1_000 });
    await clock.advance(1_000);
    expect(look().reason).toBe("InForce");
  });

  it("gives the reason for a missing entry: the manager's namespace, an invalid spec, an app in deletion", () => {
    app = sample({}, { namespace: TARGET.namespace });
    expect(look()).toEqual({ reason: "ManagerNamespace", againMs: undefined });
    app = sample({ spec: { selector: {} } });
    expect(look()).toEqual({ reason: "Invalid", againMs: undefined });
    app = sample({ spec: { selector: {} } }, { deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: ["x"] });
    expect(look()).toEqual({ reason: "Dissolving", againMs: undefined });
  });
});
