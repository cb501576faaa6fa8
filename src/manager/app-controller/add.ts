// What the controller of a source kind watches: its objects, the pods of their namespaces, the metadata of
// all namespaces, the entries of the injecting webhook, and the reports of proxies. Each source kind has a
// controller of its own.
import type { MeshCluster } from "../../api/mesh-cluster.ts";
import { metadataOnly, resourceName } from "../../kube/client/resource.ts";
import { MUTATING_WEBHOOK_CONFIGURATIONS, NAMESPACES, type Pod, REPLICA_SETS, SERVICES } from "../../kube/client/resources.ts";
import type { KubeObject } from "../../kube/types.ts";
import { anyOf, type Controller, changed, controllerOf, generationChanged } from "../../runtime/controller.ts";
import { parseRequest, type Request } from "../../runtime/reconciler.ts";
import { MUTATING_SELECTOR } from "../admission/configuration/configurations.ts";
import { createInjectionReady, type InjectionReadyOptions } from "../admission/configuration/injection-ready.ts";
import { type App, dividesClusters, type Source } from "../apps/app.ts";
import { clusterStatusFacts } from "../apps/cluster-status-facts.ts";
import type { Compile } from "../apps/compile/compiler.ts";
import { routesChanged } from "../apps/namespace-log.ts";
import type { PublishedPlans } from "../apps/published-plans.ts";
import type { WatchedClusters } from "../cluster-namespaces/watched-clusters.ts";
import type { KnownClusters } from "../clusters/known-clusters.ts";
import type { ControllerBase, ManagerContext } from "../context/manager-context.ts";
import { appPods, isPodOf, podViewIn } from "../facts/app-pods.ts";
import { createKindWatch } from "../facts/kind-watch.ts";
import type { PodHistory } from "../facts/pod-history.ts";
import type { LabelStates } from "../labels/label-state.ts";
import type { ManagerMetrics } from "../metrics/metrics.ts";
import type { RestarterOptions } from "../restart/restarter.ts";
import { changesRefusal } from "../status/refused-pods.ts";
import { createAppReconciler } from "./reconciler.ts";

// Makes a burst of namespaces or acknowledgements one reconcile.
const DEBOUNCE_MS = 20;
// A slow API server call for one app must not delay all others. Nothing is awaited between a plan and its
// publication.
const CONCURRENCY = 4;
const RECONCILE_TIMEOUT_MS = 15_000;
// A restart continues only after its status is written, so the longest wait must be short.
const BACKOFF = { baseMs: 50, maxMs: 15_000 };

interface AppControllerOptions
  extends Required<Pick<RestarterOptions, "evictor" | "settleMs">>,
    ControllerBase,
    Pick<ManagerContext, "apps" | "registry" | "pods" | "events" | "clock"> {
  /** Gets changes of pods before this controller. */
  readonly past: PodHistory;
  readonly labels: LabelStates;
  readonly webhooks?: Pick<InjectionReadyOptions, "target" | "size"> | undefined;
  readonly compile: Compile;
  readonly observed: ManagerMetrics;
  readonly plans?: PublishedPlans | undefined;
  readonly clusters: KnownClusters;
  readonly watched: Pick<WatchedClusters, "storeOf" | "onNamespaces">;
}

export function addAppController(source: Source, options: AppControllerOptions): Controller {
  const { informers, registry, apps, pods, past, webhooks } = options;
  const namespaces = informers.store(metadataOnly(NAMESPACES));
  const viewOf = ({ metadata }: Pod) => podViewIn(metadata.namespace ?? "", { apps, factsOf: registry.facts, past });
  const appsIn = (namespace?: string): App[] => apps.list(namespace).filter(({ ref }) => ref.kind === source.resource.kind);
  const appsWithPod = (pod: Pod) => appsIn(pod.metadata.namespace).filter((app) => isPodOf(app.pods, pod, viewOf(pod)));
  const refs = (list: readonly App[]) => list.map(({ ref }) => ref);
  const mutating = webhooks && informers.store(MUTATING_WEBHOOK_CONFIGURATIONS, MUTATING_SELECTOR);
  const injection = mutating && createInjectionReady({ ...options, ...webhooks, mutating });

  const dividing = (namespace?: string) => refs(appsIn(namespace).filter(dividesClusters));

  // A deleted app is in no list any more. An object may leave one app and join another one.
  const refsOf = (object: KubeObject) => {
    const { namespace = "" } = object.metadata;
    return [{ namespace, name: source.appNameOf(object) }, ...refs(appsIn(namespace))];
  };
  const enqueue = (app: Request) => controller.enqueue(app);
  const controller: Controller = controllerOf({
    name: source.controllerName,
    debounceMs: DEBOUNCE_MS,
    concurrency: CONCURRENCY,
    reconcileTimeoutMs: RECONCILE_TIMEOUT_MS,
    backoff: BACKOFF,
    ...options,
  })
    .watches(source.resource, refsOf, {
      predicates: [
        anyOf(
          generationChanged,
          changed((object) => [source.inputsOf(object), source.statusInputsOf?.(object)]),
        ),
      ],
    })
    .watches(metadataOnly(NAMESPACES), () => refs(appsIn()), { predicates: [routesChanged(source)] })
    // Not a watch of the controller, so a list that fails or hangs delays only the condition InjectionReady.
    .on<unknown>(mutating?.onChange ?? (() => undefined), () =>
      refs(appsIn().filter(({ ref }) => injection?.hasChanged(ref) === true)),
    )
    .on<void>(
      (listener) => void mutating?.synced.then(() => listener()),
      () => refs(appsIn()),
    )
    .on(registry.onChange, (key) => {
      const { namespace, name } = parseRequest(key);
      const pod = pods.get(name, namespace);
      return pod === undefined ? [] : refs(appsWithPod(pod));
    })
    .on(options.labels.onChange, (of) =>
      refs(appsIn().filter(({ spec }) => spec?.labelled?.some((each) => resourceName(each) === resourceName(of)) === true)),
    )
    // Not a watch of the controller: apps that divide no cluster do not wait for the list of MeshClusters.
    .on(options.clusters.onChange, (change) => (concernsApps(change) ? dividing(change.object.metadata.namespace) : []))
    .on<void>(
      (listener) => void options.clusters.synced.then(() => listener()),
      () => dividing(),
    )
    .on(options.clusters.decisions.onChange, dividing)
    .on(options.watched.onNamespaces, ({ namespace }) => dividing(namespace))
    .on(past.onOver, (namespace) => refs(appsIn(namespace)))
    .on(pods.onListed, (namespace) => refs(appsIn(namespace)))
    .on(pods.onChange, (change) => {
      const states = change.type === "updated" ? [change.previous, change.object] : [change.object];
      // Most changes of a pod's status concern no app.
      const factsFor = (app: App) => states.map((pod) => JSON.stringify(appPods(app.pods, [pod], viewOf(pod))));
      const changedApps = [...new Set(states.flatMap(appsWithPod))].filter((app) => {
        const [one, other] = factsFor(app);
        return one !== other;
      });
      return refs(changedApps);
    })
    .withReconciler(
      createAppReconciler({
        ...options,
        source,
        store: options.informers.store(source.resource),
        namespaces,
        injection,
        services: createKindWatch({ ...options, resource: SERVICES, onChange: enqueue }),
        replicaSets: createKindWatch({ ...options, resource: REPLICA_SETS, onChange: enqueue, matters: changesRefusal }),
        onAnswer: enqueue,
        onCompiled: enqueue,
      }),
    );

  return controller;
}

/** Of the status, only whether the cluster is reachable changes plans. */
const concernsApps = changed(({ spec, status, metadata: { labels, deletionTimestamp } }: MeshCluster) => [
  spec,
  labels,
  deletionTimestamp,
  clusterStatusFacts(status).isUnreachable,
]);
