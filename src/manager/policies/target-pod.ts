// A pod as a target of policies. Pure. Invariant: a pod is one as long as its proxy may run, whatever labels
// are left of those that the injection wrote. Called by the reconciler.
import type { Pod } from "../../kube/client/resources.ts";
import type { Apps } from "../apps/app.ts";
import { hasEnded } from "../facts/app-pods.ts";
import { carriesProxy, hasEgress, INJECTED_LABEL } from "../facts/injected-pod.ts";
import { podKey } from "../facts/pod-key.ts";
import type { FactsOf } from "../facts/proxy-facts.ts";
import type { TargetPod } from "./policy-kind.ts";

/** Undefined if the pod has no proxy, or has ended. */
export function targetPod(pod: Pod, apps: Pick<Apps, "get">, factsOf: FactsOf): TargetPod | undefined {
  const { namespace = "", name = "", labels = {} } = pod.metadata;
  const injected = labels[INJECTED_LABEL];
  if (hasEnded(pod) || (injected === undefined && !carriesProxy(pod))) return undefined;
  // Labels can be removed from a running pod. Then the routes that its proxy enforces name its app.
  const app = injected ?? factsOf(podKey({ namespace, name }))?.acknowledged?.app.name ?? "";
  const subset = apps.get(app, namespace)?.pods.subsetOf(labels) ?? "";
  return { namespace, name, labels, ip: pod.status?.podIP ?? "", app, subset, hasEgress: hasEgress(pod) };
}
