// What the policies controller watches: the objects of all policy kinds, the pods with a proxy and their
// apps, and the reports of the proxies. A request names a namespace: policies are for pods of their own
// namespace.
import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import type { KubeObject } from "../../kube/types.ts";
import { type Controller, controllerOf } from "../../runtime/controller.ts";
import type { ControllerMetrics } from "../../runtime/controller-metrics.ts";
import type { EventRecorder } from "../../runtime/events.ts";
import type { Informers } from "../../runtime/informers.ts";
import { changed } from "../../runtime/predicates.ts";
import { parseRequest, type Request } from "../../runtime/reconciler.ts";
import type { Apps } from "../apps/app.ts";
import type { PodWatch } from "../facts/pod-watch.ts";
import type { ProxyRegistry } from "../server/proxy-registry.ts";
import { inputsOf } from "./accepted-policies.ts";
import type { PolicyKind, PolicyObject } from "./policy-kind.ts";
import { createPoliciesReconciler } from "./reconciler.ts";

/** Gathers the pods of a scale-up and the answers of their proxies. */
const DEBOUNCE_MS = 50;
/** Namespaces with many pods take turns with the others, and a status that cannot be written keeps one worker busy. */
const CONCURRENCY = 16;

export interface PoliciesControllerOptions {
  readonly kinds: readonly PolicyKind[];
  readonly client: KubeClient;
  readonly informers: Informers;
  readonly apps: Apps;
  readonly pods: PodWatch;
  readonly registry: ProxyRegistry;
  readonly events: Pick<EventRecorder, "event">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: ControllerMetrics;
}

export function addPoliciesController(options: PoliciesControllerOptions): Controller {
  const { informers, apps, pods, registry } = options;
  const kinds = options.kinds.map((kind) => ({ kind, store: informers.store(kind.resource) }));
  const namespaceOf = ({ metadata }: KubeObject): Request[] => [requestOf(metadata.namespace ?? "")];
  // Annotations and labels recover a breaker and switch an object off. The time in the status starts a fault
  // that ends by itself.
  const predicates = [changed<PolicyObject>(inputsOf)];
  let builder = controllerOf({ name: "policies", debounceMs: DEBOUNCE_MS, concurrency: CONCURRENCY, ...options });
  for (const { kind } of kinds) builder = builder.watches(kind.resource, namespaceOf, { predicates });
  const controller = builder.withReconciler(createPoliciesReconciler({ ...options, kinds }));
  const enqueue = (namespace: string) => controller.enqueue(requestOf(namespace));
  pods.onListed(enqueue);
  pods.onChange(({ object }) => enqueue(object.metadata.namespace ?? ""));
  registry.onChange((pod) => enqueue(parseRequest(pod).namespace));
  apps.onChange(({ object }) => enqueue(object.metadata.namespace ?? ""));
  return controller;
}

function requestOf(namespace: string): Request {
  return { namespace: "", name: namespace };
}
