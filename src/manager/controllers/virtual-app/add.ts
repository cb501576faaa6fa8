// What the VirtualApp controller watches: the apps, their pods, all namespaces (as metadata), and what the proxies say.
import { STRIP_MANAGED_FIELDS } from "../../../api/annotations.ts";
import type { VirtualApp } from "../../../api/virtual-app.ts";
import type { Clock } from "../../../base/clock.ts";
import type { Logger } from "../../../base/log.ts";
import { metadataOnly } from "../../../kube/client/resource.ts";
import { NAMESPACES, PODS, type Pod } from "../../../kube/client/resources.ts";
import type { KubeClient } from "../../../kube/client/types.ts";
import { type Controller, controllerOf } from "../../../runtime/controller.ts";
import { selfRequest } from "../../../runtime/controller-source.ts";
import type { EventRecorder } from "../../../runtime/events.ts";
import type { Informers } from "../../../runtime/informers.ts";
import { anyOf, changed, generationChanged, labelsChanged } from "../../../runtime/predicates.ts";
import type { Request } from "../../../runtime/reconciler.ts";
import type { Store } from "../../../runtime/store.ts";
import type { WorkQueueMetrics } from "../../../runtime/work-queue-metrics.ts";
import { VIRTUAL_APPS } from "../../resources.ts";
import type { ProxyRegistry } from "../../snapshot-server/proxy-registry.ts";
import { isPodOf } from "../../translate/app-pods.ts";
import { createVirtualAppReconciler } from "./reconciler.ts";

// A burst of namespaces or acknowledgements is one reconcile; far below the second in which changes must arrive.
const DEBOUNCE_MS = 20;

export interface VirtualAppControllerOptions {
  readonly client: KubeClient;
  readonly informers: Informers;
  readonly registry: ProxyRegistry;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: WorkQueueMetrics;
}

export function addVirtualAppController(options: VirtualAppControllerOptions): Controller {
  const { informers, registry } = options;
  const apps = informers.store(VIRTUAL_APPS);
  const pods = informers.store(PODS);
  const namespaces = informers.store(metadataOnly(NAMESPACES));

  const controller = controllerOf({ name: "virtual-app", debounceMs: DEBOUNCE_MS, ...options })
    .for(VIRTUAL_APPS, { predicates: [anyOf(generationChanged, changed(readAnnotation))] })
    .watches(PODS, (pod) => appsOfPod(apps, pod))
    .watches(metadataOnly(NAMESPACES), () => apps.list().flatMap(selfRequest), { predicates: [labelsChanged] })
    .withReconciler(createVirtualAppReconciler({ ...options, apps, pods, namespaces }));

  registry.onChange((key) => {
    const [namespace = "", name = ""] = key.split("/");
    const pod = pods.get(name, namespace);
    if (pod !== undefined) for (const request of appsOfPod(apps, pod)) controller.enqueue(request);
  });
  pods.onChange((change) => {
    // A pod that is gone ends its claims; one made anew under the same name is another pod.
    if (change.type === "deleted") registry.forget(`${change.object.metadata.namespace}/${change.object.metadata.name}`);
  });
  return controller;
}

// An annotation does not count in the generation.
function readAnnotation({ metadata }: VirtualApp): string | undefined {
  return metadata.annotations?.[STRIP_MANAGED_FIELDS];
}

function appsOfPod(apps: Store<VirtualApp>, pod: Pod): Request[] {
  return apps
    .list(pod.metadata.namespace)
    .filter(({ metadata, spec }) => isPodOf({ name: metadata.name ?? "", spec }, pod))
    .flatMap(selfRequest);
}
