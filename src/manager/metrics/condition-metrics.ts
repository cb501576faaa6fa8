// The metric of the conditions of all objects that the mesh writes a status for. Each scrape reads them from the stores,
// so all kinds follow one rule, and a deleted object has no series any more. Invariants: at most MAX_CONDITIONS series;
// types and reasons are words of this version, never texts of an object.
import type { Condition } from "../../api/conditions.ts";
import { Gauge, type Registry } from "../../base/metrics.ts";
import type { KubeObject } from "../../kube/types.ts";
import { CLUSTER_REASONS } from "../clusters/cluster-status.ts";
import { POLICY_REASONS } from "../policies/policy-conditions.ts";
import { CONDITION_REASONS } from "../status/app-status.ts";

/** A kind whose objects have conditions. */
export interface ConditionedKind {
  readonly kind: string;
  list(): readonly ConditionedObject[];
}

interface ConditionedObject extends KubeObject {
  readonly status?: { readonly conditions?: readonly Condition[] | undefined } | undefined;
}

/** Those of about 1,250 VirtualApps or 2,500 policies. A scrape with so many series blocks the event loop for about 50 ms, and has 1.3 MB. */
export const MAX_CONDITIONS = 10_000;

const REASONS = [CONDITION_REASONS, POLICY_REASONS, CLUSTER_REASONS];
const KNOWN_TYPES: ReadonlySet<string> = new Set(REASONS.flatMap(Object.keys));
const KNOWN_REASONS: ReadonlySet<string> = new Set(REASONS.flatMap(Object.values).flat());

/** @param kinds none unless this replica leads: a sum over the replicas would count objects twice */
export function addConditionMetrics(registers: Registry[], kinds: () => readonly ConditionedKind[]): void {
  let leftOut = 0;
  new Gauge({
    name: "ctrlmesh_manager_condition",
    help: "1 for the present status and reason of each condition of each object.",
    labelNames: ["kind", "namespace", "name", "type", "status", "reason"],
    registers,
    collect() {
      this.reset();
      const rows = rowsOf(kinds());
      for (const row of rows.slice(0, MAX_CONDITIONS)) this.set(row, 1);
      leftOut = Math.max(0, rows.length - MAX_CONDITIONS);
    },
  });
  // Registered second, since a scrape collects in this order, and the first one sets leftOut.
  new Gauge({
    name: "ctrlmesh_manager_conditions_left_out",
    help: `Conditions without a series, because there are more than ${MAX_CONDITIONS}.`,
    registers,
    collect() {
      this.set(leftOut);
    },
  });
}

/** The first conditions of all objects, then the second ones: the bound cuts off the last ones, and alerts use the first ones. */
function rowsOf(kinds: readonly ConditionedKind[]) {
  const objects = kinds.flatMap(({ kind, list }) => list().map(({ metadata, status }) => ({ kind, metadata, status })));
  return objects
    .flatMap(({ kind, metadata: { namespace = "", name = "" }, status }) =>
      (status?.conditions ?? [])
        .filter(({ type }) => KNOWN_TYPES.has(type))
        .map(({ type, status, reason }, at) => ({
          at,
          labels: { kind, namespace, name, type, status, reason: knownReason(reason) },
        })),
    )
    .sort((a, b) => a.at - b.at)
    .map(({ labels }) => labels);
}

/** Another version may have written the status. */
function knownReason(reason: string): string {
  return KNOWN_REASONS.has(reason) ? reason : "Other";
}
