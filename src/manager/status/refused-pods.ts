// Why a workload has no pods: the API server refuses them, for example for a quota, a LimitRange or a webhook.
// Pure. Only a ReplicaSet says so in its status; a StatefulSet says it in Events alone.
import { plainText } from "../../base/plain-text.ts";
import type { ReplicaSet } from "../../kube/client/resources.ts";
import type { Change } from "../../runtime/store.ts";
import type { PodSelection } from "../apps/app.ts";

/** Enough for a refusal by injection with two reasons, and for one by a quota. */
const MAX_CHARS = 400;

/** Text for the end of a message; "" if no ReplicaSet of the app is refused its pods. */
export function refusedPodsText(sets: readonly ReplicaSet[] = [], { selects }: Pick<PodSelection, "selects">): string {
  const refused = sets.filter((set) => refusalOf(set) !== undefined && selects(set.spec?.template?.metadata?.labels));
  const [first, ...others] = refused.sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  if (first === undefined) return "";
  const more = others.length === 0 ? "" : `, nor can ${others.length} more`;
  return `; ReplicaSet ${nameOf(first)} cannot create pods${more}: ${plainText(refusalOf(first) ?? "", MAX_CHARS)}`;
}

/** True if a refusal begins, changes or ends. */
export function changesRefusal(change: Change<ReplicaSet>): boolean {
  const now = change.type === "deleted" ? undefined : refusalOf(change.object);
  const before = change.type === "updated" ? change.previous : change.object;
  return now !== (change.type === "added" ? undefined : refusalOf(before));
}

function refusalOf({ status }: ReplicaSet): string | undefined {
  const isRefusal = ({ type, status: is, reason }: { type: string; status: string; reason?: string | undefined }) =>
    type === "ReplicaFailure" && is === "True" && reason === "FailedCreate";
  return status?.conditions?.find(isRefusal)?.message;
}

const nameOf = ({ metadata }: ReplicaSet) => metadata.name ?? "";
