// The PlacementDecisions of an app: for each subset the clusters that it owns. Pure. Invariants: a cluster is in at most one slice of
// the app; a cluster that moves is listed for its next owner, so that readers see no cluster disappear; equal owners give equal objects.
import { createHash } from "node:crypto";
import { SLICE_APP_LABEL } from "../../api/ownership-slice.ts";
import {
  DECISION_INDEX_LABEL,
  DECISION_KEY_LABEL,
  MAX_DECISIONS,
  PLACEMENT_DECISIONS,
  type PlacementDecision,
  SCHEDULER_NAME,
} from "../../api/placement-decision.ts";
import { controllerRef } from "../../kube/client/owner.ts";
import { apiVersionOf, type Resource } from "../../kube/client/resource.ts";
import { subsetDisplayName } from "../../mesh/ownership/words.ts";
import type { App } from "../apps/app.ts";
import type { OwnershipPlan } from "../apps/published-plans.ts";

/**
 * @param resource the kind of the app's object, which owns the PlacementDecisions
 * @param hasProfile whether a cluster has a ClusterProfile of its name: decisions may name no other clusters
 */
export function placementObjects(
  { ref, object }: Pick<App, "ref" | "object">,
  resource: Resource,
  { rules }: Pick<OwnershipPlan, "rules">,
  hasProfile: (cluster: string) => boolean,
): PlacementDecision[] {
  const all = [...rules.values()].flatMap(({ clusters = [] }) => clusters);
  // All pods work on a cluster whose namespaces are divided, so it has no place in decisions.
  const owners = new Map(all.flatMap(({ name, owner, upstream }) => (upstream === undefined ? [[name, owner] as const] : [])));
  const bySubset = Map.groupBy([...owners.keys()].filter(hasProfile).sort(), (name) => owners.get(name) ?? "");
  return [...bySubset].flatMap(([subset, names]) => {
    const key = decisionKey(ref.name, subsetDisplayName(subset));
    return slicesOf(names).map((slice, index) => ({
      apiVersion: apiVersionOf(PLACEMENT_DECISIONS),
      kind: PLACEMENT_DECISIONS.kind,
      metadata: {
        namespace: ref.namespace,
        name: `${key}-${index}`,
        labels: { [SLICE_APP_LABEL]: ref.name, [DECISION_KEY_LABEL]: key, [DECISION_INDEX_LABEL]: String(index) },
        ownerReferences: [controllerRef(resource, object)],
      },
      schedulerName: SCHEDULER_NAME,
      decisions: slice.map((name) => ({ clusterProfileRef: { name } })),
    }));
  });
}

function slicesOf(names: readonly string[]): string[][] {
  const count = Math.ceil(names.length / MAX_DECISIONS);
  return Array.from({ length: count }, (_, at) => names.slice(at * MAX_DECISIONS, (at + 1) * MAX_DECISIONS));
}

/** The length of a label's value. */
const MAX_KEY = 63;
const HASH_CHARS = 10;

/** APP.SUBSET, which is unique since no subset has a dot in its name. If that is too long for a label, its end is a hash. */
export function decisionKey(app: string, subset: string): string {
  const key = `${app}.${subset}`;
  if (key.length <= MAX_KEY) return key;
  const hash = createHash("sha256").update(key).digest("hex").slice(0, HASH_CHARS);
  return `${key.slice(0, MAX_KEY - HASH_CHARS - 1).replace(/[-.]+$/, "")}-${hash}`;
}
