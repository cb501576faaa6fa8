// Whether a pod is ready. Pure. Invariant: a terminating pod may still be ready; callers for which it counts
// as gone test that too.
import type { Condition, Pod } from "../../kube/client/resources.ts";

/** The pod's condition Ready if it is True. */
export function readyCondition({ status }: Pod): Condition | undefined {
  return status?.conditions?.find(({ type, status: is }) => type === "Ready" && is === "True");
}

/** True if the pod is ready and stays. */
export function isReadyToStay(pod: Pod): boolean {
  return pod.metadata.deletionTimestamp === undefined && readyCondition(pod) !== undefined;
}
