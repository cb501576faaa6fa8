// The status field `labels` of an app: the sum over its resources, and the worst resource.
import type { ShardingStatus } from "../../api/sharding-config.ts";
import { resourceName } from "../../kube/client/resource.ts";
import type { GroupResource } from "../../kube/types.ts";
import type { LabelState } from "./label-state.ts";
import { isNamespaces } from "./right-labels.ts";

export type LabelsStatus = NonNullable<ShardingStatus["labels"]>;

const MAX_COMPLETE = 256;

// The status shows the first of these reasons.
const WORST_FIRST = ["NotAllowed", "Forbidden", "NotServed", "Failing", "Listing", "Labelling", "NoPolicy", "OptedOut"];

/**
 * @param previous stays until every resource has a state, and while only the namespaces and resources that
 * were complete are being listed: a manager that has just begun to lead knows nothing worse
 */
export function labelsStatus(
  resources: readonly GroupResource[],
  stateOf: (of: GroupResource) => LabelState | undefined,
  previous: LabelsStatus | undefined,
): LabelsStatus | undefined {
  if (resources.length === 0) return undefined;
  const known = resources.map((of) => ({ of, state: stateOf(of) }));
  const sum = (count: (state: LabelState) => number) =>
    known.reduce((total, { state }) => total + (state === undefined ? 0 : count(state)), 0);
  const counts = { total: sum(({ total }) => total), labelled: sum(({ labelled }) => labelled) };
  if (known.some(({ state }) => state === undefined)) {
    return previous ?? { ...counts, complete: [], waitingFor: "Listing", message: "the objects are being listed" };
  }
  const listing = known.filter(({ state }) => state?.reason === "Listing");
  // The namespaces are never among the complete resources.
  const wasComplete = (of: GroupResource) => isNamespaces(of) || previous?.complete?.includes(resourceName(of));
  if (previous !== undefined && listing.length > 0 && listing.every(({ of }) => wasComplete(of))) return previous;
  const complete = known.filter(({ of, state }) => state?.reason === "Complete" && !isNamespaces(of));
  const worst = WORST_FIRST.flatMap((reason) => known.filter(({ state }) => state?.reason === reason));
  const [first] = worst;
  const more = worst.length > 1 ? ` (and ${worst.length - 1} more of ${known.length} resources)` : "";
  return {
    ...counts,
    complete: complete.map(({ of }) => resourceName(of)).slice(0, MAX_COMPLETE),
    ...(first?.state && { waitingFor: first.state.reason, message: `${resourceName(first.of)}: ${first.state.message}${more}` }),
  };
}
