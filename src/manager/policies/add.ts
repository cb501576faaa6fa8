// What the policies controller watches: the objects of all policy kinds, the pods with a proxy and their
// apps, and the reports of the proxies. A request names a namespace, since a policy is for pods of its own.
import type { KubeObject } from "../../kube/types.ts";
import { type Controller, changed, controllerOf } from "../../runtime/controller.ts";
import { parseRequest, type Request } from "../../runtime/reconciler.ts";
import type { ControllerBase, ManagerContext } from "../context/manager-context.ts";
import { inputsOf } from "./accepted-policies.ts";
import { circuitBreakers } from "./circuit-breakers.ts";
import { faultInjections } from "./fault-injections.ts";
import type { PolicyKind, PolicyObject } from "./policy-kind.ts";
import { createPoliciesReconciler } from "./reconciler.ts";
import { trafficPolicies } from "./traffic-policies.ts";

/** The policy kinds of this version. */
export const POLICY_KINDS: readonly PolicyKind[] = [trafficPolicies, circuitBreakers, faultInjections];

/** Gathers the pods of a scale-up and the answers of their proxies. */
const DEBOUNCE_MS = 50;
/** Namespaces with many pods take turns, and a status that cannot be written keeps one worker busy. */
const CONCURRENCY = 16;

export type PoliciesControllerOptions = ControllerBase & Pick<ManagerContext, "apps" | "pods" | "registry" | "events" | "clock">;

export function addPoliciesController(options: PoliciesControllerOptions): Controller {
  const { informers, apps, pods, registry } = options;
  const kinds = POLICY_KINDS.map((kind) => ({ kind, store: informers.store(kind.resource) }));
  const namespaceOf = ({ metadata }: KubeObject): Request[] => [requestOf(metadata.namespace ?? "")];
  // An annotation recovers a breaker, a label switches an object off, a time in the status starts a fault.
  const predicates = [changed<PolicyObject>(inputsOf)];
  let builder = controllerOf({ name: "policies", debounceMs: DEBOUNCE_MS, concurrency: CONCURRENCY, ...options });
  for (const { kind } of kinds) builder = builder.watches(kind.resource, namespaceOf, { predicates });
  return builder
    .on(pods.onListed, (namespace) => [requestOf(namespace)])
    .on(pods.onChange, ({ object }) => namespaceOf(object))
    .on(registry.onChange, (pod) => [requestOf(parseRequest(pod).namespace)])
    .on(apps.onChange, ({ object }) => namespaceOf(object))
    .withReconciler(createPoliciesReconciler({ ...options, kinds }));
}

function requestOf(namespace: string): Request {
  return { namespace: "", name: namespace };
}
