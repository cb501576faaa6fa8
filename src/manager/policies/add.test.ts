import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createFakeClock, type FakeClock } from "../../../test/support/fake-clock.ts";
import { createFakeKubeClient, type FakeKubeClient } from "../../../test/support/fake-kube-client.ts";
import { sampleFaultInjection } from "../../../test/support/traffic-objects.ts";
import type { FaultInjection } from "../../api/fault-injection.ts";
import { INJECTED_LABEL } from "../../api/injected-pod.ts";
import { FAULT_INJECTIONS } from "../../api/resources.ts";
import { createLogger } from "../../base/log.ts";
import { createRegistry } from "../../base/metrics.ts";
import { NO_REPORTS } from "../../mesh/contract/messages.ts";
import type { PolicyResource } from "../../mesh/contract/policy-type.ts";
import type { Controller } from "../../runtime/controller.ts";
import { createControllerMetrics } from "../../runtime/controller-metrics.ts";
import { createInformers, type Informers } from "../../runtime/informers.ts";
import { addPoliciesController, type PoliciesControllerOptions } from "./add.ts";

describe("the policies controller", () => {
  const log = createLogger({ name: "test", level: "silent" });
  const ref = { namespace: "ops", name: "guard" };
  let clock: FakeClock;
  let client: FakeKubeClient;
  let informers: Informers;
  let controller: Controller;
  let published: PolicyResource | undefined;

  beforeEach(async () => {
    clock = createFakeClock();
    client = createFakeKubeClient();
    published = undefined;
    informers = createInformers({ client, clock, random: () => 0.5, log });
    const labels = { app: "shop", [INJECTED_LABEL]: "shop" };
    const pod = { metadata: { namespace: "ops", name: "shop-0", uid: "pod-uid", labels } };
    const never = () => () => undefined;
    const around = {
      apps: { get: () => undefined, list: () => [], hasSynced: true, onChange: never },
      pods: { list: () => [pod], onListed: never, onChange: never },
      registry: {
        facts: () => ({ ...NO_REPORTS, capabilities: new Set(["type:policy"]), problems: {} }),
        onChange: never,
        publish: (_pod: string, _type: unknown, resource: PolicyResource) => {
          published = resource;
        },
      },
      events: { event: () => undefined },
    } as unknown as Pick<PoliciesControllerOptions, "apps" | "pods" | "registry" | "events">;
    const metrics = createControllerMetrics(createRegistry("test", "0"));
    controller = addPoliciesController({ client, informers, clock, log, metrics, ...around });
    const { signal } = new AbortController();
    await informers.start(signal);
    await controller.start(signal);
  });
  afterEach(async () => {
    await controller.stop();
    await informers.stop();
  });

  /** The work of a namespace goes on in turns of the event loop. */
  const settle = async () => {
    for (let turn = 0; turn < 5; turn++) {
      await clock.advance(1_000);
      await setImmediate();
    }
  };
  const put = (spec: object, generation: number) => {
    const sample = sampleFaultInjection({}, { ...spec }) as unknown as FaultInjection;
    const before = client.read(FAULT_INJECTIONS, ref);
    client.put(FAULT_INJECTIONS, { ...before, ...sample, metadata: { ...before?.metadata, ...sample.metadata, generation } });
  };
  const ends = () => published?.faults.map(({ untilMs }) => untilMs);

  it("begins a fault that ends by itself once its start is stored, and counts anew after an edit", async () => {
    const firstMs = clock.now();
    put({ maxDuration: "1h" }, 1);
    await settle();
    const [first] = ends() ?? [];
    expect(first).toBeGreaterThanOrEqual(firstMs + 3_600_000);
    expect(first).toBeLessThanOrEqual(clock.now() + 3_600_000);
    const editedMs = clock.now();
    put({ maxDuration: "30m" }, 2);
    await settle();
    expect(ends()?.[0]).toBeGreaterThanOrEqual(editedMs + 1_800_000);
    expect(ends()?.[0]).toBeLessThan(first ?? 0);
  });

  it("takes a policy away when its label switches it off", async () => {
    put({}, 1);
    await settle();
    expect(ends()).toEqual([undefined]);
    const stored = client.read(FAULT_INJECTIONS, ref) as FaultInjection;
    const labels = { "faultinjection.ctrlmesh.kusionstack.io/disable": "true" };
    client.put(FAULT_INJECTIONS, { ...stored, metadata: { ...stored.metadata, labels } });
    await settle();
    expect(ends()).toEqual([]);
  });
});
