// The facts from which a status is computed, and what several parts of the status share. Pure. Invariant: an
// age in a text is in coarse steps, so that it does not cause endless writes of the status.
import type { AppStatus, RestartStatus } from "../../api/app-status.ts";
import type { Condition } from "../../api/conditions.ts";
import { ROUTE } from "../../mesh/contract/route-type.ts";
import type { AppPod } from "../../mesh/handover/app-pod.ts";
import type { AppPlan } from "../../mesh/handover/plan-app.ts";
import { type FactsOf, type ProxyFacts, podKey } from "../../mesh/handover/proxy-facts.ts";
import type { AppSpec, AppWords } from "../apps/app.ts";
import type { LabelsStatus } from "../labels/labels-status.ts";

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
  readonly describe?: AppSpec["describe"] | undefined;
  readonly labelsAfter?: ((previous: LabelsStatus | undefined) => LabelsStatus | undefined) | undefined;
  readonly restart?: RestartStatus | undefined;
  /** The new InjectionReady; absent: the condition stays as it is. */
  readonly injection?: Verdict<InjectionReason> | undefined;
  /** The new WebhookIntercepted; undefined if the operator has no webhook server. */
  readonly webhook?: Verdict<WebhookReason> | undefined;
  /** Text for the end of a message: which workload's pods the API server refuses, and why; "" or absent: none. */
  readonly refusedPods?: string;
  /** RFC 3339; with milliseconds if measured times need them. */
  readonly now: string;
}

export const INJECTION_REASONS = [
  "InForce",
  "WebhookPending",
  "WebhookTooLarge",
  "ManagerNamespace",
  "Invalid",
  "Dissolving",
] as const;

export type InjectionReason = (typeof INJECTION_REASONS)[number];

export const WEBHOOK_FAULTS = [
  "PortNotNamed",
  "NoCertificateVolume",
  "CertificateUnreadable",
  "InjectedBefore",
  "NumericTargetPort",
] as const;

export const WEBHOOK_REASONS = ["Intercepted", ...WEBHOOK_FAULTS, "NoPods", "NoService", "NotKnown"] as const;

export type WebhookReason = (typeof WEBHOOK_REASONS)[number];

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

export function meshedPods({ pods }: Pick<StatusFacts, "pods">): AppPod[] {
  return pods.filter(({ proxy, ended }) => proxy === "own" && !ended);
}

/** The pods with the proxy that run. A terminating pod gets nothing new. */
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

/** The pod's proxy enforces exactly its planned snapshot, and no other one is on its way. */
export function isSynced(facts: StatusFacts, pod: AppPod): boolean {
  const proxy = proxyOf(facts, pod);
  const { digest } = facts.plan.rulesFor(pod);
  if (proxy?.acknowledged?.digest !== digest || proxy.inDoubt.length > 0 || proxy.mayHoldMore) return false;
  return proxy.outstanding === undefined || proxy.outstanding.digest === digest;
}

export function subsetsByLabels({ desired }: AppPlan): ReadonlySet<string> {
  return new Set(desired.rules.flatMap((rule) => (rule.kind === "objects" ? [rule.subset] : [])));
}

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

interface Step {
  readonly ms: number;
  readonly text: string;
}

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** After this time a wait counts as stuck, and the status asks a person for help. */
export const STALLED_AFTER_MS = 5 * MINUTE_MS;

/** After this time a disconnected proxy counts as lost. The time is longer than a failover of the manager. */
export const LOST_AFTER_MS = MINUTE_MS;

const STEPS: readonly Step[] = [
  { ms: 10 * SECOND_MS, text: "10 s" },
  { ms: 30 * SECOND_MS, text: "30 s" },
  { ms: LOST_AFTER_MS, text: "1 min" },
  { ms: STALLED_AFTER_MS, text: "5 min" },
  { ms: 10 * MINUTE_MS, text: "10 min" },
  { ms: HOUR_MS, text: "1 h" },
  { ms: 6 * HOUR_MS, text: "6 h" },
  { ms: 24 * HOUR_MS, text: "1 day" },
];

export function ageMs(since: string, now: string): number {
  return Math.max(0, Date.parse(now) - Date.parse(since));
}

/** The largest step that has passed, for example "over 1 min"; "" before the first step. */
export function ageText(since: string, now: string): string {
  const age = ageMs(since, now);
  const step = STEPS.findLast(({ ms }) => ms <= age);
  return step === undefined ? "" : `over ${step.text}`;
}

/** The time until the text changes next; undefined if it does not change again. */
export function nextStepMs(since: string, now: string): number | undefined {
  const age = ageMs(since, now);
  const step = STEPS.find(({ ms }) => ms > age);
  return step === undefined ? undefined : step.ms - age;
}

export function countSteps(count: number): string {
  if (count < 3) return String(count);
  const step = [3, 10, 30, 100, 300, 1000].findLast((at) => at <= count) ?? count;
  return `at least ${step}`;
}
