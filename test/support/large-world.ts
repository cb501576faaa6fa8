// The manager's app controller with large families on a fake API server, and proxies that acknowledge every
// route within milliseconds. Everything runs in this process and in real time.
import { setTimeout as sleep } from "node:timers/promises";
import { ROUTES_FINALIZER } from "../../src/api/app-status.ts";
import { INJECTED_LABEL } from "../../src/api/injected-pod.ts";
import { SHARDING_CONFIGS } from "../../src/api/resources.ts";
import type { ShardingConfig } from "../../src/api/sharding-config.ts";
import { systemClock } from "../../src/base/clock.ts";
import { silentLogger } from "../../src/base/log.ts";
import { createRegistry } from "../../src/base/metrics.ts";
import { NAMESPACES, PODS } from "../../src/kube/client/resources.ts";
import { addAppController } from "../../src/manager/app-controller/add.ts";
import { createApps } from "../../src/manager/apps/app.ts";
import { createCompiler } from "../../src/manager/apps/compile/compiler.ts";
import { createKnownClusters } from "../../src/manager/clusters/known-clusters.ts";
import { createKnownDecisions } from "../../src/manager/decisions/known-decisions.ts";
import { createPodHistory, recordPods } from "../../src/manager/facts/pod-history.ts";
import { createPodWatch } from "../../src/manager/facts/pod-watch.ts";
import { createLabelStates } from "../../src/manager/labels/label-state.ts";
import { createManagerMetrics } from "../../src/manager/metrics/metrics.ts";
import { createProxyRegistry } from "../../src/manager/server/proxy-registry.ts";
import { balancedMap, countNamespaces } from "../../src/manager/sharding/balanced-map.ts";
import { numbersUpTo } from "../../src/manager/sharding/membership.ts";
import { createShardingSource } from "../../src/manager/sharding/sharding-source.ts";
import { formatPlacement } from "../../src/manager/sharding/stored-placement.ts";
import { acceptsType } from "../../src/mesh/contract/resource-type.ts";
import { ROUTE } from "../../src/mesh/contract/route-type.ts";
import { podKey } from "../../src/mesh/handover/proxy-facts.ts";
import { createControllerMetrics } from "../../src/runtime/controller-metrics.ts";
import { createInformers } from "../../src/runtime/informers.ts";
import { matchHere } from "./compile.ts";
import { createFakeKubeClient } from "./fake-kube-client.ts";
import { NO_CLUSTERS } from "./no-clusters.ts";
import { noEvictor } from "./no-evictor.ts";
import { familyRoot, samplePlacement } from "./sharding-config.ts";

interface LargeWorldOptions {
  /** Of each family; one pod each. */
  readonly shards: number;
  readonly namespaces: number;
  readonly families: number;
}

export type LargeWorld = Awaited<ReturnType<typeof largeWorld>>;

/** The world is quiet after this time, longer than any wait in it, with less work than `IDLE_MS`. */
const QUIET_MS = 300;
const IDLE_MS = 20;

export async function largeWorld({ shards, namespaces, families }: LargeWorldOptions) {
  const [client, clock, log, random] = [createFakeKubeClient(), systemClock, silentLogger(), Math.random];
  const names = Array.from({ length: namespaces }, (_, at) => `namespace-${at}`);
  const counts = countNamespaces(names);
  // An answer of an API server takes at least a turn of the event loop.
  client.before = () => new Promise((resolve) => void setImmediate(resolve));
  let map = balancedMap(undefined, numbersUpTo(shards), counts);
  let active = numbersUpTo(shards);

  const placement = () => formatPlacement(samplePlacement({ shards, active, map }));
  const putRoot = (family: number) => {
    const metadata = { namespace: `team-${family}`, name: `family-${family}` };
    const root = familyRoot(metadata, {
      statefulSet: "op",
      resources: [
        ["apps", "deployments"],
        ["", "configmaps"],
        ["", "secrets"],
      ],
    });
    const before = client.read(SHARDING_CONFIGS, metadata);
    client.put<ShardingConfig>(SHARDING_CONFIGS, {
      ...before,
      ...root,
      status: { ...before?.status, placement: placement() },
      metadata: { ...metadata, generation: 1, finalizers: [ROUTES_FINALIZER] },
    } as unknown as ShardingConfig);
  };
  const podNames = (family: number) =>
    Array.from({ length: shards }, (_, at) => ({ namespace: `team-${family}`, name: `op-${at}` }));
  const putNamespace = (name: string, labels: Record<string, string>) =>
    client.put(NAMESPACES, { metadata: { name, labels, creationTimestamp: "2026-01-01T00:00:00Z" } });

  for (const name of names) putNamespace(name, {});
  for (let family = 0; family < families; family++) {
    putRoot(family);
    for (const { namespace, name } of podNames(family)) {
      const labels = { [INJECTED_LABEL]: `family-${family}`, "statefulset.kubernetes.io/pod-name": name };
      client.put(PODS, {
        metadata: { namespace, name, labels },
        spec: { nodeName: "n", containers: [{ name: "operator" }], initContainers: [{ name: "ctrlmesh-proxy" }] },
        status: { phase: "Running", conditions: [{ type: "Ready", status: "True", lastTransitionTime: "2026-01-01T00:00:00Z" }] },
      } as never);
    }
  }

  const informers = createInformers({ client, clock, random, log });
  const source = createShardingSource();
  const apps = createApps(informers, [source]);
  const pods = createPodWatch({ informers, apps, log });
  const registry = createProxyRegistry({ log });
  const past = createPodHistory({ clock, tokenCacheMs: 0 });
  recordPods(pods, past, registry);
  const metricsRegistry = createRegistry("manager", "0");
  const controller = addAppController(source, {
    client,
    informers,
    clusters: createKnownClusters(informers, createKnownDecisions()),
    watched: NO_CLUSTERS.watched,
    pods,
    clock,
    log,
    settleMs: 0,
    registry,
    apps,
    past,
    labels: createLabelStates(new Map()),
    compile: createCompiler({ matchExpressions: matchHere, clock }),
    events: { event: () => undefined },
    evictor: noEvictor,
    metrics: createControllerMetrics(metricsRegistry),
    observed: createManagerMetrics({ metricsRegistry }),
  });
  const { signal } = new AbortController();
  for (const each of [informers, pods, controller]) await each.start(signal);
  await sleep(500);
  let isStopped = false;
  for (let family = 0; family < families; family++) {
    for (const pod of podNames(family)) {
      const stream = {
        send({ nonce }: { readonly nonce: number }) {
          const acknowledge = () => {
            if (!isStopped) registry.acked(podKey(pod), stream, { type: ROUTE.name, nonce });
          };
          setTimeout(acknowledge, 2 + Math.random() * 20);
        },
        end: () => undefined,
      };
      const route = { version: 0, acknowledged: undefined, inDoubt: [], mayHoldMore: false };
      const uid = client.read(PODS, pod)?.metadata.uid ?? "";
      registry.connected(
        podKey(pod),
        { uid, streamNumber: 1, capabilities: [acceptsType(ROUTE.name), "routes-delta"], route },
        stream,
      );
    }
  }
  /** Returns when the last work has ended. */
  const quiet = async () => {
    for (;;) {
      const [before, startMs] = [performance.eventLoopUtilization(), performance.now()];
      await sleep(QUIET_MS);
      if (performance.eventLoopUtilization(before).active < IDLE_MS) return startMs;
    }
  };
  await quiet();

  return {
    quiet,
    bear: (name: string) => void putNamespace(name, {}),
    bury: (name: string) => client.remove(NAMESPACES, { name }),
    label: (name: string, value: string) => void putNamespace(name, { value }),
    /** Divides the namespaces among so many shards. @param shift moves every namespace by so many shards */
    place(count: number, shift = 0) {
      active = numbersUpTo(count);
      map = balancedMap(map, active, counts).map((shard) => ((shard - 1 + shift) % count) + 1);
      for (let family = 0; family < families; family++) putRoot(family);
    },
    async stop() {
      isStopped = true;
      await controller.stop();
      await pods.stop();
      await informers.stop();
    },
  };
}
