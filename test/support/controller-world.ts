// A controller of the manager and its stores, with a fake clock and a fake API server.
import { silentLogger } from "../../src/base/log.ts";
import { createRegistry } from "../../src/base/metrics.ts";
import type { Controller } from "../../src/runtime/controller.ts";
import { createControllerMetrics } from "../../src/runtime/controller-metrics.ts";
import { createInformers } from "../../src/runtime/informers.ts";
import { createFakeClock } from "./fake-clock.ts";
import { createFakeKubeClient } from "./fake-kube-client.ts";

export type ControllerWorld = ReturnType<typeof createControllerWorld>;

export function createControllerWorld() {
  const clock = createFakeClock();
  const client = createFakeKubeClient();
  const log = silentLogger();
  const informers = createInformers({ client, clock, random: () => 0, log });
  const metrics = createControllerMetrics(createRegistry("manager", "1"));
  let controller: Controller | undefined;
  return {
    clock,
    client,
    /** What every controller takes. */
    base: { client, informers, clock, log, metrics },
    async start(added: Controller): Promise<void> {
      controller = added;
      await informers.start(new AbortController().signal);
      await controller.start(new AbortController().signal);
    },
    async stop(): Promise<void> {
      await controller?.stop();
      await informers.stop();
    },
    async settle(ms: number): Promise<void> {
      await clock.advance(ms);
      await clock.flush();
    },
  };
}
