// What the VirtualApp controller watches: the apps, the pods of their namespaces, all namespaces (as metadata), and what the proxies
// say.
import { STRIP_MANAGED_FIELDS } from "../../../api/annotations.ts";
import { VIRTUAL_APPS } from "../../../api/resources.ts";
import type { VirtualApp } from "../../../api/virtual-app.ts";
import type { Clock } from "../../../base/clock.ts";
import type { Logger } from "../../../base/log.ts";
import { metadataOnly } from "../../../kube/client/resource.ts";
import { NAMESPACES, type Pod } from "../../../kube/client/resources.ts";
import type { KubeClient } from "../../../kube/client/types.ts";
import { type Controller, controllerOf } from "../../../runtime/controller.ts";
import type { ControllerMetrics } from "../../../runtime/controller-metrics.ts";
import { selfRequest } from "../../../runtime/controller-source.ts";
import type { EventRecorder } from "../../../runtime/events.ts";
import type { Informers } from "../../../runtime/informers.ts";
import { anyOf, changed, generationChanged, labelsChanged } from "../../../runtime/predicates.ts";
import { appPods, isPodOf } from "../../facts/app-pods.ts";
import type { GonePods } from "../../facts/gone-pods.ts";
import { createOlderPods } from "../../facts/older-pods.ts";
import { podKey } from "../../facts/pod-key.ts";
import { podViewIn } from "../../facts/pod-view.ts";
import type { PodWatch } from "../../facts/pod-watch.ts";
import type { ManagerMetrics } from "../../metrics/metrics.ts";
import type { ProxyRegistry } from "../../proxies/proxy-registry.ts";
import type { RestarterOptions } from "../../restart/restarter.ts";
import { conditionOf } from "../../status/facts.ts";
import { createVirtualAppReconciler } from "./reconciler.ts";

// A burst of namespaces or acknowledgements is one reconcile; far below the second in which changes must arrive.
const DEBOUNCE_MS = 20;
// An API server that does not answer about one app holds up neither that app for ever nor all others. What the reconciler and the
// restarter remember they remember by app, and a plan is made and handed out without a wait in between.
const CONCURRENCY = 4;
const RECONCILE_TIMEOUT_MS = 15_000;
// Restarts in order go on only with a status that is written: once the API server takes it again, nobody waits for minutes.
const BACKOFF = { baseMs: 50, maxMs: 15_000 };

export interface VirtualAppControllerOptions extends Required<Pick<RestarterOptions, "isLeader" | "settleMs">> {
  readonly client: KubeClient;
  readonly informers: Informers;
  readonly registry: ProxyRegistry;
  readonly pods: PodWatch;
  readonly gone: GonePods;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: ControllerMetrics;
  readonly observed: ManagerMetrics;
}

export function addVirtualAppController(options: VirtualAppControllerOptions): Controller {
  const { informers, registry, pods, gone } = options;
  const apps = informers.store(VIRTUAL_APPS);
  const namespaces = informers.store(metadataOnly(NAMESPACES));
  const older = createOlderPods(options);
  const viewOf = ({ metadata }: Pod) => podViewIn(metadata.namespace ?? "", { apps, registry, older });
  const appsWithPod = (pod: Pod) =>
    apps
      .list(pod.metadata.namespace)
      .filter(({ metadata, spec }) => isPodOf({ name: metadata.name ?? "", spec }, pod, viewOf(pod)));

  const controller = controllerOf({
    name: "virtual-app",
    debounceMs: DEBOUNCE_MS,
    concurrency: CONCURRENCY,
    reconcileTimeoutMs: RECONCILE_TIMEOUT_MS,
    backoff: BACKOFF,
    ...options,
  })
    .for(VIRTUAL_APPS, { predicates: [anyOf(generationChanged, changed(readAnnotation), changed(readInjection))] })
    .watches(metadataOnly(NAMESPACES), () => apps.list().flatMap(selfRequest), { predicates: [labelsChanged] })
    .withReconciler(
      createVirtualAppReconciler({ ...options, onAnswer: (app) => controller.enqueue(app), apps, namespaces, older }),
    );

  registry.onChange((key) => {
    const [namespace = "", name = ""] = key.split("/");
    const pod = pods.get(name, namespace);
    if (pod !== undefined) for (const request of appsWithPod(pod).flatMap(selfRequest)) controller.enqueue(request);
  });
  const enqueueAll = (namespace: string) => {
    for (const request of apps.list(namespace).flatMap(selfRequest)) controller.enqueue(request);
  };
  gone.onOver(enqueueAll);
  older.onOver(enqueueAll);
  pods.onListed((namespace) => {
    gone.listed(namespace, pods.list(namespace) ?? []);
    older.listed(namespace, pods.list(namespace) ?? []);
    enqueueAll(namespace);
  });
  pods.onChange((change) => {
    // Its claims go on there, if they do; one made anew under the same name is another pod.
    if (change.type === "deleted") gone.removed(change.object, registry.forget(keyOf(change.object)));
    const states = change.type === "updated" ? [change.previous, change.object] : [change.object];
    // A kubelet writes much of a pod's status that no app asks for.
    const saysMore = ({ name, spec }: AppSelection) =>
      states.map((pod) => JSON.stringify(appPods({ name, spec }, [pod], viewOf(pod))));
    for (const app of new Set(states.flatMap((pod) => appsWithPod(pod)))) {
      const [one, other] = saysMore({ name: app.metadata.name ?? "", spec: app.spec });
      if (one !== other) for (const request of selfRequest(app)) controller.enqueue(request);
    }
  });
  pods.onLeft((namespace) => {
    gone.left(namespace);
    older.left(namespace);
    // Nobody hears of these pods' end any more.
    for (const key of [...registry.pods]) if (key.startsWith(`${namespace}/`)) registry.forget(key);
  });
  return controller;
}

function keyOf({ metadata }: Pod): string {
  return podKey({ namespace: metadata.namespace ?? "", name: metadata.name ?? "" });
}

// An annotation does not count in the generation.
function readAnnotation({ metadata }: VirtualApp): string | undefined {
  return metadata.annotations?.[STRIP_MANAGED_FIELDS];
}

// Ready tells it, and another controller writes it.
function readInjection({ status }: VirtualApp): string | undefined {
  return conditionOf(status, "InjectionReady")?.reason;
}

type AppSelection = Parameters<typeof appPods>[0];
