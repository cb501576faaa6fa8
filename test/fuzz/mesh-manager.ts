// One replica of the manager in the model: its real parts, without gRPC and without a queue: the script says when it looks. It sees
// the cluster through stores of its own, which may lag. Invariant: as add.ts has it, a pod that is gone is forgotten.

import type { VirtualApp } from "../../src/api/virtual-app.ts";
import type { Clock } from "../../src/base/clock.ts";
import { isMeshError } from "../../src/base/errors.ts";
import { silentLogger } from "../../src/base/log.ts";
import type { Resource } from "../../src/kube/client/resource.ts";
import type { Pod } from "../../src/kube/client/resources.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import { createAppReconciler } from "../../src/manager/app-controller/reconciler.ts";
import { createPodHistory, recordPods } from "../../src/manager/facts/pod-history.ts";
import { createPodWatch } from "../../src/manager/facts/pod-watch.ts";
import { createLabelStates } from "../../src/manager/labels/label-state.ts";
import { createEvictor } from "../../src/manager/restart/evictor.ts";
import { createProxyJudge } from "../../src/manager/server/judge-proxy.ts";
import { createProxyRegistry } from "../../src/manager/server/proxy-registry.ts";
import { serveProxyStream } from "../../src/manager/server/proxy-stream.ts";
import { createRegistrationTables } from "../../src/manager/server/registration-tables.ts";
import { createStore, type WritableStore } from "../../src/runtime/store.ts";
import { compileHere } from "../support/compile.ts";
import { NO_CLUSTERS } from "../support/no-clusters.ts";
import { appsIn } from "../support/source-apps.ts";
import { createFamilySource } from "./mesh-family.ts";
import { ModelStream } from "./mesh-stream.ts";

const log = silentLogger();

/** What there is, for watches. */
export interface ClusterView {
  apps(): readonly VirtualApp[];
  pods(): readonly Pod[];
  namespaces(): readonly KubeObject[];
}

export interface ModelManagerOptions {
  readonly epoch: number;
  readonly cluster: ClusterView;
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly onEvent: (reason: string) => void;
}

export type ModelManager = ReturnType<typeof createModelManager>;

export function createModelManager({ epoch, cluster, client, clock, onEvent }: ModelManagerOptions) {
  const apps = createStore<VirtualApp>(rethrow);
  const namespaces = createStore<KubeObject>(rethrow);
  let podStore: WritableStore<Pod> | undefined;
  const state = { believesToLead: true, isAppWatchLate: false, isPodWatchLate: false };

  const informers = {
    acquire<T extends KubeObject>(_: Resource<T>) {
      const store = createStore<Pod>(rethrow);
      store.replace(cluster.pods());
      podStore = store;
      const release = async () => {
        if (podStore === store) podStore = undefined;
      };
      return { store: store as unknown as WritableStore<T>, release };
    },
  };
  const source = createFamilySource();
  const pods = createPodWatch({ informers, apps: appsIn(apps, source), log });
  const registry = createProxyRegistry({ log, clock });
  const history = createPodHistory({ clock, tokenCacheMs: 10_000 });
  recordPods(pods, history, registry);
  // In the model the processes of a pod end before its object does.
  const past = { ...history, gone: () => [] };
  const events = { event: (_: KubeObject, __: string, reason: string) => onEvent(reason) };
  const reconciler = createAppReconciler({
    source,
    client,
    store: apps,
    apps: appsIn(apps, source),
    pods,
    past,
    namespaces,
    registry,
    ...NO_CLUSTERS,
    services: { list: () => undefined, forget: () => undefined },
    replicaSets: { list: () => undefined, forget: () => undefined },
    labels: createLabelStates(new Map()),
    evictor: createEvictor({ client, pods, events, clock, log }),
    events,
    compile: compileHere,
    onCompiled: () => undefined,
    clock,
    log,
  });
  const leadership = {
    get epoch() {
      return state.believesToLead ? epoch : undefined;
    },
  };
  const leaderElsewhere = () => (state.believesToLead ? undefined : "");
  const judge = createProxyJudge({ pods, apps, leaderElsewhere });
  const streamDeps = {
    registry,
    judge,
    leadership,
    leaderElsewhere,
    // Its lease has become another one's, which it notices sooner or later.
    rejections: { reject: () => void Object.assign(state, { believesToLead: false }) },
    clock,
    log,
    cut: () => undefined,
    registrations: { allow: () => true },
    tables: createRegistrationTables({ clock, tables: registry.tables }),
    turns: { run: async <T>(_: string, work: () => T | Promise<T>) => work() },
  };

  const watchApps = () => apps.replace(cluster.apps());
  const watchPods = () => podStore?.replace(cluster.pods());
  void pods.start(new AbortController().signal);
  namespaces.replace(cluster.namespaces());
  watchApps();

  return Object.assign(state, {
    epoch,
    /** The watches bring what there is, but for those that are late. */
    see() {
      if (!state.isAppWatchLate) watchApps();
      if (!state.isPodWatchLate) watchPods();
      namespaces.replace(cluster.namespaces());
    },
    open(): ModelStream {
      const stream = new ModelStream();
      serveProxyStream(stream.asServed, streamDeps);
      return stream;
    },
    async reconcile(namespace: string, name: string) {
      try {
        await reconciler.reconcile({ namespace, name }, new AbortController().signal);
      } catch (error) {
        if (!isMeshError(error, "KUBE_UNREACHABLE")) throw error;
      }
    },
  });
}

function rethrow(error: unknown): never {
  throw error;
}
