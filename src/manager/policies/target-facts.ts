// What is known about a policy in one of its pods. Pure. Invariant: as long as a proxy has not reported to
// this manager, the status keeps what an earlier manager wrote about the pod.
import { MAX_RULE_SNAPSHOTS, type PolicyStatus, type RuleSnapshot, type TargetStatus } from "../../api/policy-status.ts";
import type { RuleStateMessage, UnnamedLockMessage } from "../../mesh/contract/messages.ts";
import { POLICY } from "../../mesh/contract/policy-type.ts";
import type { ProxyFacts } from "../../mesh/handover/proxy-facts.ts";
import type { FaultRule, LimitRule, PolicySet, ResourceRule } from "../../policy/policy.ts";
import type { PodPolicies } from "./pod-policies.ts";
import { needsEgress, type Policy } from "./policy-kind.ts";

export interface TargetFacts {
  readonly name: string;
  readonly ip: string;
  /** Its proxy enforces the newest policies. */
  readonly isSynced: boolean;
  readonly isConnected: boolean;
  /** Its proxy has not been connected for a minute. */
  readonly isLost: boolean;
  /** The pod has too many policies, so this one stays out. */
  readonly isLeftOut: boolean;
  /** The proxy does not see requests to other servers, which the policy has rules about. */
  readonly lacksEgress: boolean;
  /** Why the proxy keeps the rules of this policy as it has them, in words; "" if it does not. */
  readonly keptBecause: string;
  /** A lock of the operator that the policy limits, in words; "" for none. */
  readonly limitedLock: string;
  /** The digest of the policies that the proxy enforces; "" if it has reported none. */
  readonly enforced: string;
  /** Why the proxy refuses the policies; empty if it does not. */
  readonly problems: readonly string[];
  /** The rules that limit requests, those with open breakers first. */
  readonly rules: readonly RuleSnapshot[];
}

export interface ProxyPolicies extends PodPolicies {
  readonly facts: ProxyFacts | undefined;
  /** Milliseconds until the proxy counts as lost, 0 if it does; undefined if it is connected. */
  readonly lostInMs: number | undefined;
}

/** @param uid of the policy's object */
export function targetFacts(
  { pod, digest, leftOut, keeps, facts, lostInMs }: ProxyPolicies,
  uid: string,
  policy: Policy | undefined,
  previous: PolicyStatus | undefined,
): TargetFacts {
  const reportedDigest = facts?.policies.digest ?? "";
  const last = reportedDigest === "" ? lastOf(previous, pod, digest) : undefined;
  const enforced = last?.configHash ?? reportedDigest;
  const isSynced = enforced === digest && !leftOut.has(uid);
  const { rules = [] } = facts?.policies ?? {};
  const reported = rules.filter((rule) => rule.uid === uid);
  // The open ones come first, so one that is closed says that no further one is open.
  const hasAllOpen = rules.length < MAX_RULE_SNAPSHOTS || rules.at(-1)?.opened === false;
  return {
    name: pod.name,
    ip: pod.ip,
    isSynced,
    isConnected: facts?.connected === true,
    isLost: lostInMs === 0,
    isLeftOut: leftOut.has(uid),
    lacksEgress: policy !== undefined && needsEgress(policy.rules) && !pod.hasEgress,
    keptBecause: keeps.get(uid) ?? "",
    limitedLock: policy === undefined ? "" : limitedLock(policy.rules, facts?.unnamedLock),
    enforced,
    problems: facts?.problems[POLICY.name] ?? [],
    rules: last?.limitingSnapshots ?? ruleSnapshots(isSynced && hasAllOpen ? policy : undefined, reported),
  };
}

/** What the status said about a pod. One that was made anew under its name has another address. */
function lastOf(previous: PolicyStatus | undefined, pod: PodPolicies["pod"], digest: string): TargetStatus | undefined {
  const { name: podName, ip: podIP, hasRun } = pod;
  if (podIP === "") return undefined;
  const { targetStatus = [], targets } = previous ?? {};
  const listed = targetStatus.find((each) => each.podName === podName);
  if (listed !== undefined) return listed.podIP === podIP ? listed : undefined;
  // The worst pods come first, so one beyond the end of the list was no worse than the last one.
  const end = targetStatus.at(-1);
  const isBeyond = hasRun && end !== undefined && (targets?.total ?? 0) > targetStatus.length;
  if (!isBeyond || end.message !== undefined || end.configHash !== digest || end.limitingSnapshots?.some(isOpened))
    return undefined;
  return { podName, podIP, configHash: digest, limitingSnapshots: [] };
}

function isOpened({ state }: RuleSnapshot): boolean {
  return state === "Opened";
}

const RANK = { Opened: 0, HalfOpen: 1, Closed: 2 } as const;

/** A proxy reports what has opened. @param policy that the proxy enforces; undefined if nobody knows the others */
function ruleSnapshots(policy: Policy | undefined, reported: readonly RuleStateMessage[]): RuleSnapshot[] {
  const known = reported.map(snapshotOf);
  const names = new Set(known.map(({ name }) => name));
  const limiting = (policy?.rules.limits ?? []).filter(({ limiter: { kind } }) => kind !== "deny" && kind !== "exempt");
  const others = new Set(limiting.map(({ origin }) => origin.rule)).difference(names);
  const closed = [...others].map((name) => ({ name, state: "Closed" }) as const);
  return [...known, ...closed].sort((a, b) => RANK[a.state] - RANK[b.state]);
}

function snapshotOf({ rule, opened, halfOpen, sinceMs, cause }: RuleStateMessage): RuleSnapshot {
  const openState = halfOpen ? "HalfOpen" : "Opened";
  return {
    name: rule,
    state: opened ? openState : "Closed",
    ...(cause !== "" && { cause }),
    lastTransitionTime: new Date(sinceMs).toISOString(),
  };
}

/** The requests that keep a lock. */
const LOCK_VERBS = ["get", "create", "update", "patch"];

/**
 * The lock of the operator that the rules limit, in words; "" for none. Exempt are a Lease in the namespace of the pods,
 * and a lock that the app names.
 */
function limitedLock({ limits, faults }: PolicySet, lock: UnnamedLockMessage | null | undefined): string {
  if (lock === null || lock === undefined || lock.resource.startsWith("leases")) return "";
  const isHit = ({ match }: LimitRule | FaultRule) => match.resources.some((rule) => isAbout(rule, lock.resource));
  return [...limits, ...faults].some(isHit) ? `${lock.resource} ${lock.lockName}` : "";
}

/** ConfigMaps and Endpoints are of the core group. */
function isAbout({ apiGroups, resources, verbs }: ResourceRule, resource: string): boolean {
  const has = (list: readonly string[], ...texts: readonly string[]) => list.some((each) => each === "*" || texts.includes(each));
  return has(apiGroups, "") && has(resources, resource) && has(verbs, ...LOCK_VERBS);
}
