// Asks all policies about one request to another server: faults, then the rules about hosts, then limits and
// breakers. A delayed request is judged by the rules in force after its delay; a refused one costs no token.
import type { Random } from "../../base/clock.ts";
import { formatAddress } from "../../base/settings.ts";
import { clusterAt } from "../../mesh/ownership/clusters.ts";
import type { Permit } from "../../policy/engine/permit.ts";
import { ruleName } from "../../policy/policy.ts";
import { type EgressTarget, egressRequestOf } from "../../policy/policy-request.ts";
import type { Policies } from "../policies/policies.ts";
import { nameOfRule } from "../policies/policy-refusal.ts";
import type { Session } from "../session/session.ts";
import type { ClusterGate } from "./cluster-gate.ts";
import type { AddressRules } from "./dial.ts";
import { EgressError } from "./egress-error.ts";
import { deniedBy, faultOf, limitedBy } from "./refusals.ts";
import type { Visit } from "./visits.ts";

export interface AdmitDeps {
  readonly session: Pick<Session, "current">;
  readonly policies: Policies;
  readonly random: Random;
  /** Absent: no cluster is divided. */
  readonly clusters?: Pick<ClusterGate, "enter" | "isCluster"> | undefined;
}

export interface Admitted {
  readonly permit: Permit;
  /** Each chunk of bytes for the server has to pass it. Absent: all do. */
  readonly mayPass?: (() => boolean) | undefined;
}

/** The divided cluster that has the server now; undefined if none has it. */
export function clusterNameOf(
  target: Pick<EgressTarget, "host" | "port">,
  { current }: AdmitDeps["session"],
): string | undefined {
  return current && clusterAt(current.snapshot, formatAddress(target))?.name;
}

/** Judges the addresses of a server that `admit` has let pass by its name. */
export function refusedAddresses(method: string, target: EgressTarget, { policies }: Pick<AdmitDeps, "policies">): AddressRules {
  return (addresses) =>
    policies.judgeAddresses(egressRequestOf(method, target), addresses).map((rule, at) => {
      if (rule === undefined) return undefined;
      const why = `its address ${addresses[at]} is refused by ${nameOfRule(rule.origin)}`;
      const message = `ctrlmesh egress: ${method} to ${target.host}:${target.port}: ${why}`;
      return new EgressError("denied", message, { rule: ruleName(rule.origin) });
    });
}

/** @throws EgressError */
export async function admit(
  method: string,
  target: EgressTarget,
  { session, policies, random, clusters }: AdmitDeps,
  visit: Visit,
): Promise<Admitted> {
  const request = egressRequestOf(method, target);
  const server = `${target.host}:${target.port}`;
  if (session.current === undefined) {
    const message = "ctrlmesh egress: this proxy has no policies from the manager yet, so it serves nothing; see /readyz";
    throw new EgressError("not-ready", message, { retryAfterSeconds: 1 });
  }
  const delay = policies.delay(request);
  if (delay !== undefined) visit.notes.delay = await policies.wait(delay, visit.signal);
  // Drawn only now: the rule may have gone meanwhile.
  const abort = policies.abort(request);
  if (abort !== undefined) throw faultOf(abort.rule.origin, abort.status);
  const { refusedBy } = policies.judge(request);
  if (refusedBy !== undefined) throw deniedBy(refusedBy, method, target);
  if (method !== "CONNECT" && clusters?.isCluster(target)) {
    throw new EgressError("bad-request", `ctrlmesh egress: ${server} is a cluster's: only tunnels (CONNECT) lead there`);
  }
  // Requests too: their server may begin to belong to a divided cluster while they run.
  const mayPass = clusters?.enter(target, visit);
  const decision = policies.limit(request);
  if (decision.kind === "permitted") return { permit: decision.permit, mayPass };
  throw limitedBy(decision, method, target, random);
}
