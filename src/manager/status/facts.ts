// The facts from which a status is computed, and functions that several parts of the status share. Pure.
import type { AppStatus, RestartStatus } from "../../api/app-status.ts";
import type { Condition } from "../../api/conditions.ts";
import { DEFAULT_SUBSET } from "../../route/table.ts";
import { ROUTE } from "../../wire/route-type.ts";
import type { AppSpec, AppWords } from "../apps/app.ts";
import type { AppPod } from "../facts/app-pods.ts";
import { podKey } from "../facts/pod-key.ts";
import type { FactsOf, ProxyFacts } from "../facts/proxy-facts.ts";
import type { LabelsStatus } from "../labels/labels-status.ts";
import type { AppPlan } from "../plan/plan-app.ts";
import type { Wait } from "../plan/plan-fences.ts";

export interface StatusFacts {
  readonly generation: number;
  /** The last written status, of any manager. */
  readonly previous: AppStatus | undefined;
  readonly pods: readonly AppPod[];
  readonly factsOf: FactsOf;
  readonly plan: AppPlan;
  readonly version: number;
  readonly lockName: string;
  readonly words: AppWords;
  /** See AppSpec. */
  readonly describe?: AppSpec["describe"] | undefined;
  /** The field `labels`, from the one before. */
  readonly labelsAfter?: ((previous: LabelsStatus | undefined) => LabelsStatus | undefined) | undefined;
  /** The running restart of pods. */
  readonly restart?: RestartStatus | undefined;
  /** The new InjectionReady; absent: the condition stays as it is. */
  readonly injection?: Verdict<InjectionReason> | undefined;
  /** The new WebhookIntercepted; undefined if the operator has no webhook server. */
  readonly webhook?: Verdict<WebhookReason> | undefined;
  /** RFC 3339; with milliseconds if measured times need them. */
  readonly now: string;
}

/** The reasons of the condition InjectionReady. */
export const INJECTION_REASONS = [
  "InForce",
  "WebhookPending",
  "WebhookTooLarge",
  "ManagerNamespace",
  "Invalid",
  "Dissolving",
] as const;

export type InjectionReason = (typeof INJECTION_REASONS)[number];

/** Why calls of the operator's webhooks go past the proxies. */
export const WEBHOOK_FAULTS = [
  "PortNotNamed",
  "NoCertificateVolume",
  "CertificateUnreadable",
  "InjectedBefore",
  "NumericTargetPort",
] as const;

/** The reasons of the condition WebhookIntercepted. */
export const WEBHOOK_REASONS = ["Intercepted", ...WEBHOOK_FAULTS, "NoPods", "NoService", "NotKnown"] as const;

export type WebhookReason = (typeof WEBHOOK_REASONS)[number];

/** The content of a condition. */
export interface Verdict<R extends string = string> {
  readonly status: Condition["status"];
  readonly reason: R;
  readonly message: string;
}

/** Why the proxy does not enforce its route. Problems of other resource types do not delay a handover. */
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

/**
 * The pods with the app's proxy that run. A pod that has not started has no claims, and a terminating pod
 * gets nothing new.
 */
export function servingPods(facts: StatusFacts): AppPod[] {
  return meshedPods(facts).filter((pod) => {
    const proxy = proxyOf(facts, pod);
    return proxy?.connected || (!pod.terminating && (pod.running || proxy !== undefined));
  });
}

/** The running pods without a proxy. Nothing prevents their writes. */
export function barePods({ pods }: Pick<StatusFacts, "pods">): AppPod[] {
  return pods.filter(({ proxy, running }) => proxy === "none" && running);
}

/**
 * The pod's proxy enforces exactly its planned snapshot, and no other snapshot is on its way to the proxy.
 */
export function isSynced(facts: StatusFacts, pod: AppPod): boolean {
  const proxy = proxyOf(facts, pod);
  const { digest } = facts.plan.rulesFor(pod);
  if (proxy?.acknowledged?.digest !== digest || proxy.inDoubt.length > 0 || proxy.mayHoldMore) return false;
  return proxy.outstanding === undefined || proxy.outstanding.digest === digest;
}

/** The subsets that own objects by label, in any namespace. */
export function subsetsByLabels({ desired }: AppPlan): ReadonlySet<string> {
  return new Set(desired.rules.flatMap((rule) => (rule.kind === "objects" ? [rule.subset] : [])));
}

export function subsetText(name: string): string {
  return name === DEFAULT_SUBSET ? "the default subset" : `subset "${name}"`;
}

/** The manager does not know yet what the pod claims. This wait does not mean that something moves. */
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

export function conditionOf(
  status: { readonly conditions?: readonly Condition[] | undefined } | undefined,
  type: string,
): Condition | undefined {
  return status?.conditions?.find((row) => row.type === type);
}
