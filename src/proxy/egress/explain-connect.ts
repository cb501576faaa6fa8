// What the proxy would do with a tunnel to another server, stage by stage, in the order of `admit`. Nothing is sent, charged or
// remembered. A name is not resolved, so rules about addresses are not asked.
import type { Random } from "../../base/clock.ts";
import { formatAddress } from "../../base/settings.ts";
import { clusterAt } from "../../mesh/ownership/clusters.ts";
import { subsetDisplayName } from "../../mesh/ownership/words.ts";
import { type EgressTarget, egressRequestOf } from "../../policy/policy-request.ts";
import type { Policies } from "../policies/policies.ts";
import { nameOfRule } from "../policies/policy-refusal.ts";
import { enforcedNow, type Session } from "../session/session.ts";
import type { EgressError } from "./egress-error.ts";
import { type ClusterFacts, clusterRefusal, deniedBy, faultOf, limitedBy } from "./refusals.ts";

export interface ExplainConnectDeps {
  readonly session: Pick<Session, "current">;
  readonly policies: Pick<Policies, "matching">;
  readonly gate: { readonly closedFor: string | undefined };
  /** Undefined: the proxy does not see what the pod sends to other servers. */
  readonly home?: ClusterFacts["home"] | undefined;
  readonly random: Random;
}

interface Stage {
  readonly stage: string;
  readonly says: string;
  readonly refusal?: EgressError | undefined;
}

const METHOD = "CONNECT";

/** @throws StatusError if the proxy has no routes yet */
export function explainConnect(target: EgressTarget, deps: ExplainConnectDeps) {
  const { snapshot } = enforcedNow(deps.session);
  const head = {
    app: `${snapshot.app.namespace}/${snapshot.app.name}`,
    subset: subsetDisplayName(snapshot.subset),
    version: snapshot.version,
    request: `${METHOD} ${formatAddress(target)}`,
  };
  if (deps.home === undefined) {
    const message = "goes to the server: the pod has no annotation egress, so its sidecar does not see requests to other servers";
    return { ...head, decision: "forwarded", message, steps: [] };
  }
  const request = egressRequestOf(METHOD, target);
  const { faults, hosts, refused } = deps.policies.matching(request);
  const cluster = clusterAt(snapshot, formatAddress(target));
  const { subset } = snapshot;
  const facts = { subset, closedFor: deps.gate.closedFor, home: deps.home };
  const stages: Stage[] = [
    ...faults.map(({ abort, delay, mode, origin }): Stage => {
      const isCertain = mode === "Enforce" && abort !== undefined && abort.percent >= 100;
      const parts = [
        ...(delay === undefined ? [] : [`delays ${delay.percent} % by ${delay.ms / 1_000} s`]),
        ...(abort === undefined ? [] : [`answers ${abort.percent} % with ${abort.status}`]),
      ];
      const says = `${nameOfRule(origin)} ${parts.join(" and ")}${mode === "Enforce" ? "" : ` (mode ${mode}: it only counts)`}`;
      return { stage: "faults", says, refusal: isCertain ? faultOf(origin, abort.status) : undefined };
    }),
    ...(hosts.refusedBy === undefined
      ? []
      : [{ stage: "hosts", says: "refuses it", refusal: deniedBy(hosts.refusedBy, METHOD, target) }]),
    {
      stage: "cluster",
      says: cluster === undefined ? "no cluster that the app divides has this server" : `this is cluster ${cluster.name}`,
      refusal: cluster && clusterRefusal(cluster, facts),
    },
    ...(refused === undefined
      ? []
      : [{ stage: "limits", says: "refuses it", refusal: limitedBy(refused, METHOD, target, deps.random) }]),
  ];
  const last = stages.findIndex(({ refusal }) => refusal !== undefined);
  const { refusal } = stages[last] ?? {};
  const steps = stages.slice(0, last < 0 ? undefined : last + 1).map(({ stage, says }) => ({ stage, says }));
  if (refusal === undefined) return { ...head, decision: "forwarded", message: "the tunnel is opened", steps };
  const { rule, status: code, code: reason, message } = refusal;
  return { ...head, decision: "refused", reason, code, message, ...(rule !== undefined && { rule }), steps };
}
