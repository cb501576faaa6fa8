// What a status is made from, and the few questions that several of its parts ask. Pure.

import type { AppStatus, RestartStatus } from "../../api/app-status.ts";
import type { Condition, ConditionType } from "../../api/conditions.ts";
import { DEFAULT_SUBSET } from "../../route/table.ts";
import { ROUTE } from "../../wire/route-type.ts";
import type { AppPod } from "../facts/app-pods.ts";
import { podKey } from "../facts/pod-key.ts";
import type { FactsOf, ProxyFacts } from "../facts/proxy-facts.ts";
import type { AppPlan } from "../plan/plan-app.ts";
import type { Wait } from "../plan/plan-fences.ts";
import type { ReasonOf } from "./reasons.ts";

export interface StatusFacts {
  readonly generation: number;
  /** The status that is followed: the last one written, by whatever manager. */
  readonly previous: AppStatus | undefined;
  readonly pods: readonly AppPod[];
  readonly factsOf: FactsOf;
  readonly plan: AppPlan;
  readonly version: number;
  readonly lockName: string;
  /** Paths of the spec that have no effect in this version. */
  readonly idle: readonly string[];
  /** The restart of pods that runs now. */
  readonly restart?: RestartStatus | undefined;
  /** Whether the next pods are injected; absent: what is said of that stays. */
  readonly injection?: Verdict<"InjectionReady"> | undefined;
  /** RFC 3339, with milliseconds if the measured times are to have them. */
  readonly now: string;
}

/** What is said in a condition. */
export interface Verdict<T extends ConditionType> {
  readonly status: Condition["status"];
  readonly reason: ReasonOf<T>;
  readonly message: string;
}

/** Why the proxy does not enforce its route: a handover waits for nothing else. */
export function routeProblems({ problems }: ProxyFacts): readonly string[] {
  return problems[ROUTE.name] ?? [];
}

export function proxyOf({ factsOf }: Pick<StatusFacts, "factsOf">, pod: AppPod): ProxyFacts | undefined {
  return factsOf(podKey(pod));
}

/** The pods that carry the app's proxy. */
export function meshedPods({ pods }: Pick<StatusFacts, "pods">): AppPod[] {
  return pods.filter(({ proxy, ended }) => proxy === "own" && !ended);
}

/** Those of them that count: a pod that has not begun yet holds nothing, and one that is on its way out takes nothing new. */
export function servingPods(facts: StatusFacts): AppPod[] {
  return meshedPods(facts).filter((pod) => {
    const known = proxyOf(facts, pod);
    return known?.connected || (!pod.terminating && (pod.running || known !== undefined));
  });
}

/** The running pods without a proxy, which nothing keeps from writing. */
export function barePods({ pods }: Pick<StatusFacts, "pods">): AppPod[] {
  return pods.filter(({ proxy, running }) => proxy === "none" && running);
}

/** The pod's proxy enforces all that it is to enforce, and nothing else is on its way to it that it may enforce any moment. */
export function isSynced(facts: StatusFacts, pod: AppPod): boolean {
  const known = proxyOf(facts, pod);
  const { digest } = facts.plan.rulesFor(pod);
  if (known?.acknowledged?.digest !== digest || known.inDoubt.length > 0 || known.mayHoldMore) return false;
  return known.outstanding === undefined || known.outstanding.digest === digest;
}

/** The subsets to which labels give objects, in whatever namespaces there are. */
export function subsetsByLabels({ desired }: AppPlan): ReadonlySet<string> {
  return new Set(desired.rules.flatMap((rule) => (rule.kind === "objects" ? [rule.subset] : [])));
}

export function subsetText(name: string): string {
  return name === DEFAULT_SUBSET ? "the default subset" : `subset "${name}"`;
}

/** Nothing moves by this wait: the manager has only not heard yet what is held. */
export function isUnheard({ cause }: Wait): boolean {
  return cause === "unreported" || cause === "just-listed";
}

/** "1 namespace", "2 namespaces". */
export function countText(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** A time with whole seconds, as Kubernetes writes it (metav1.Time). */
export function wholeSeconds(time: string): string {
  return `${time.slice(0, 19)}Z`;
}

export function conditionOf(status: AppStatus | undefined, type: ConditionType): Condition | undefined {
  return status?.conditions?.find((row) => row.type === type);
}
