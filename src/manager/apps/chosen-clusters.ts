// Which clusters the PlacementDecisions of a namespace name, for `clustersFrom`. Pure. Invariant: what the manager itself has published is
// not read. Otherwise an app could follow its own owners.
import { SLICE_APP_LABEL } from "../../api/ownership-slice.ts";
import { DECISION_KEY_LABEL, type PlacementDecision, SCHEDULER_NAME } from "../../api/placement-decision.ts";
import { fieldAt, fieldsOf, itemsOf } from "../../api/rule.ts";

/** By decision key: the names of the clusters. Without a key there is no such decision; an empty one names no cluster. */
export type ChosenClusters = ReadonlyMap<string, ReadonlySet<string>>;

export const NONE_CHOSEN: ChosenClusters = new Map();

/** The objects that matter: not those of the manager, which have the label of their app. */
export const FOREIGN_DECISIONS = `${DECISION_KEY_LABEL},!${SLICE_APP_LABEL}`;

/** @param objects of one namespace; another program has written them, so they may have any content */
export function chosenClusters(objects: readonly PlacementDecision[]): ChosenClusters {
  const chosen = new Map<string, Set<string>>();
  for (const { metadata, schedulerName, decisions } of objects) {
    const { [DECISION_KEY_LABEL]: key, [SLICE_APP_LABEL]: app } = metadata.labels ?? {};
    const isOwn = app !== undefined || schedulerName === SCHEDULER_NAME;
    if (key === undefined || isOwn || metadata.deletionTimestamp !== undefined) continue;
    const names = chosen.get(key) ?? new Set();
    chosen.set(key, names);
    for (const decision of itemsOf(decisions)) {
      const { name, namespace = metadata.namespace } = fieldsOf(fieldAt(decision, "clusterProfileRef"));
      // A profile of another namespace has no MeshCluster here.
      if (typeof name === "string" && namespace === metadata.namespace) names.add(name);
    }
  }
  return chosen;
}
