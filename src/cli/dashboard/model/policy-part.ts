// A policy, as the page shows it. Pure. Invariant: a field of its status that cannot be read is named, and hides nothing else.
import { type PolicyStatus, policyStatusSchema } from "../../../api/policy-status.ts";
import type { KubeObject } from "../../../kube/types.ts";
import { readFields } from "../../apps/read-status.ts";
import { problemsIn, readyState } from "./app-part.ts";
import type { OpenBreaker, PolicyPart } from "./parts.ts";

const FIELDS = policyStatusSchema.pick({
  conditions: true,
  targets: true,
  mode: true,
  endsAt: true,
  targetStatus: true,
}).shape;
/** Conditions that say that something is on, so False is the good state. */
const SWITCHES = ["Open", "Active"];

export function policyPart(kind: string, object: KubeObject & { readonly status?: unknown }): PolicyPart {
  const { namespace = "", name = "", generation } = object.metadata;
  const read = readFields(FIELDS, object.status);
  const { conditions = [], targets, mode, endsAt, targetStatus = [] }: PolicyStatus = read.status ?? {};
  const ready = conditions.find(({ type }) => type === "Ready");
  const active = conditions.find(({ type, status }) => type === "Active" && status === "True");
  return {
    part: "policy",
    kind,
    namespace,
    name,
    ready: readyState(ready, generation),
    mode,
    endsAt,
    pods: targets,
    open: targetStatus.flatMap(openBreakers),
    faultsSince: mode === "Enforce" ? active?.lastTransitionTime : undefined,
    problems: problemsIn(conditions.filter(({ type }) => !SWITCHES.includes(type))).filter(({ type }) => type !== "Ready"),
    unread: read.unread,
  };
}

/** A rule that always refuses has no cause. */
function openBreakers({
  podName: pod,
  limitingSnapshots = [],
}: NonNullable<PolicyStatus["targetStatus"]>[number]): OpenBreaker[] {
  return limitingSnapshots
    .filter(({ state, cause }) => state === "HalfOpen" || (state === "Opened" && cause !== undefined))
    .map(({ name: rule, state, cause, lastTransitionTime: since }) => ({ pod, rule, state, cause, since }));
}
