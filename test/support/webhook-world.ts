// The manager's webhooks in the test's process, on a control plane. It has the server, the controller of the webhook
// configurations, and an identity that a test can change. test/support/mesh.ts runs the whole manager instead.
import { systemClock, systemRandom } from "../../src/base/clock.ts";
import { createLogger } from "../../src/base/log.ts";
import { createRegistry } from "../../src/base/metrics.ts";
import { createKubeClient } from "../../src/kube/client/client.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";
import { addWebhooks } from "../../src/manager/admission/add.ts";
import { addWebhookConfigurationController } from "../../src/manager/admission/configuration/add.ts";
import { createApps, type Source } from "../../src/manager/apps/app.ts";
import { createClusterFacts } from "../../src/manager/facts/cluster-facts.ts";
import { hasNativeSidecars } from "../../src/manager/injection/injection.ts";
import { createVirtualAppSource } from "../../src/manager/virtual-app/virtual-app-source.ts";
import { createControllerMetrics } from "../../src/runtime/controller-metrics.ts";
import { createInformers } from "../../src/runtime/informers.ts";
import { compileHere } from "./compile.ts";
import { createFakeIdentity, type FakeIdentity } from "./fake-identity.ts";
import { addInjectionReadyWriter } from "./injection-ready-writer.ts";
import type { Kube } from "./kube.ts";

export interface WebhookWorld {
  readonly client: KubeClient;
  readonly identity: FakeIdentity;
  /** False if the injection does not have its facts yet. */
  isReady: boolean;
  /** Requests so far. */
  requests(webhook?: "inject" | "validate"): Promise<number>;
  /** Stops the server like kill -9, without responses and clean-up. */
  kill(): Promise<void>;
  /** Starts again at the same address. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** @param sources the source kinds; default: VirtualApps */
export async function startWebhookWorld(
  kube: Kube,
  sources: readonly Source[] = [createVirtualAppSource()],
): Promise<WebhookWorld> {
  const connection = { server: kube.server, caPem: kube.caPem, token: () => kube.token };
  const client = createKubeClient({ ...connection, userAgent: "ctrlmesh-test" });
  const identity = createFakeIdentity();
  const registry = { current: createRegistry("test", "0") };
  let port = 0;
  let end: (() => Promise<void>) | undefined;

  const start = async () => {
    const log = createLogger({ name: "webhooks", level: "silent" });
    const own = createKubeClient({ ...connection, userAgent: "ctrlmesh-manager/test" });
    const common = { client: own, clock: systemClock, random: systemRandom, log };
    const informers = createInformers(common);
    const metricsRegistry = createRegistry("test", "0");
    registry.current = metricsRegistry;
    const facts = createClusterFacts({ ...common, service: { namespace: "ctrlmesh-system", name: "ctrlmesh-manager" } });
    const apps = createApps(informers, sources);
    const webhooks = addWebhooks({
      ...common,
      facts,
      informers,
      sources,
      apps,
      identity,
      listen: { host: "127.0.0.1", port },
      compile: compileHere,
      warnsOfMoves: true,
      settings: ({ gitVersion, kubernetesService }) =>
        world.isReady
          ? {
              proxyImage: "ctrlmesh/proxy:test",
              managerAddress: "ctrlmesh-manager.ctrlmesh-system.svc:5447",
              nativeSidecars: hasNativeSidecars(gitVersion),
              kubernetesService,
            }
          : undefined,
      metricsRegistry,
    });
    const target = {
      namespace: "ctrlmesh-system",
      serviceName: "ctrlmesh-manager",
      timeoutSeconds: 10,
      warnsOfMoves: true,
      get url() {
        return `https://127.0.0.1:${port}`;
      },
    };
    const entries = { ...common, informers, sources, apps, identity, target, size: { isTooLarge: false } };
    const metrics = createControllerMetrics(metricsRegistry);
    const controllers = [
      addWebhookConfigurationController({ ...entries, metrics }),
      addInjectionReadyWriter({ ...entries, metrics }),
    ];
    const abort = new AbortController();
    const parts = [facts, informers, webhooks, ...controllers];
    for (const part of parts) {
      await part.start(abort.signal);
      if (part === webhooks) port = webhooks.port;
    }
    end = async () => {
      abort.abort();
      await Promise.all(parts.map((part) => part.stop()));
      await own.close();
    };
  };
  const kill = async () => {
    await end?.();
    end = undefined;
  };

  const world: WebhookWorld = {
    client,
    identity,
    isReady: true,
    async requests(webhook) {
      const metric = await registry.current.getSingleMetric("ctrlmesh_manager_webhook_requests_total")?.get();
      const rows = (metric?.values ?? []).filter(({ labels }) => webhook === undefined || labels.webhook === webhook);
      return rows.reduce((sum, { value }) => sum + value, 0);
    },
    kill,
    start,
    async stop() {
      await kill();
      await client.close();
    },
  };
  await start();
  return world;
}
