// The refusals that policies and clusters have for a request to another server. Pure. `admit` throws them, and an explanation names
// them, so an explanation says what the operator would get.
import type { Random } from "../../base/clock.ts";
import { accessTo, CLUSTERS_PATH, type ClusterRoute } from "../../mesh/ownership/clusters.ts";
import { subsetText } from "../../mesh/ownership/words.ts";
import type { RefusedBy } from "../../policy/engine/decision.ts";
import { type EgressRule, type RuleOrigin, ruleName } from "../../policy/policy.ts";
import type { EgressTarget } from "../../policy/policy-request.ts";
import { whyUnproven } from "../home/home-proof.ts";
import { nameOfRule, refusalText, retryAfterOf } from "../policies/policy-refusal.ts";
import { EgressError } from "./egress-error.ts";

type Server = Pick<EgressTarget, "host" | "port">;

export function faultOf(origin: RuleOrigin, status: number): EgressError {
  return new EgressError("fault", `ctrlmesh egress: fault injected by ${nameOfRule(origin)}`, { status, rule: ruleName(origin) });
}

export function deniedBy({ origin, effect }: EgressRule, method: string, { host, port }: Server): EgressError {
  const why = effect === "Deny" ? `refused by ${nameOfRule(origin)}` : `no rule allows it, as ${nameOfRule(origin)} demands`;
  return new EgressError("denied", `ctrlmesh egress: ${method} to ${host}:${port}: ${why}`, { rule: ruleName(origin) });
}

export function limitedBy(refused: RefusedBy, method: string, { host, port }: Server, random: Random): EgressError {
  const message = `ctrlmesh egress: ${method} to ${host}:${port}: ${refusalText(refused)}`;
  const rule = ruleName(refused.rule.origin);
  if (refused.refusal.kind === "open") return new EgressError("open", message, { rule });
  return new EgressError("limited", message, { rule, retryAfterSeconds: retryAfterOf(refused, random) });
}

/** What decides about a cluster beside its owner. */
export interface ClusterFacts {
  readonly subset: string;
  /** The lock's new name while writes are refused, until this pod leads by that name. */
  readonly closedFor: string | undefined;
  readonly home: { readonly leftMs: () => number; readonly authorization: string | undefined };
}

/** Undefined if the pod may write to the cluster now. */
export function clusterRefusal(cluster: ClusterRoute, { subset, closedFor, home }: ClusterFacts): EgressError | undefined {
  const refuse = (result: "not-owned" | "moving" | "unproven", why: string) => {
    const retry = result === "not-owned" ? {} : { retryAfterSeconds: 1 };
    return new EgressError(result, `ctrlmesh egress: cluster ${JSON.stringify(cluster.name)} ${why}`, retry);
  };
  if (cluster.upstream !== undefined) {
    const path = `${CLUSTERS_PATH}${cluster.name}`;
    return refuse(
      "not-owned",
      `is served by this proxy at ${path}: use a kubeconfig from \`ctrlmesh kubeconfig ${cluster.name}\``,
    );
  }
  const access = accessTo(cluster, subset);
  if (access === "other-subset") return refuse("not-owned", `belongs to ${subsetText(cluster.owner)}`);
  if (access === "moving") return refuse("moving", "moves to this subset, but a pod of another subset may still write there");
  if (closedFor !== undefined) return refuse("moving", `is closed until this pod leads by the lock's new name, ${closedFor}`);
  if (home.leftMs() > 0) return undefined;
  return refuse("unproven", `is closed: ${whyUnproven(home)}`);
}
