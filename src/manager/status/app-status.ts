// Facts and plan -> the status of an app. Pure. Invariants: the size of the status does not grow with the
// number of namespaces. Each condition carries the generation that it describes. Equal facts give an equal
// status, except for ages, which change in coarse steps (ages.ts). Called by app-controller/reconciler.ts.

import type { AppStatus } from "../../api/app-status.ts";
import { CONDITION_TYPES, type Condition, type ConditionType } from "../../api/conditions.ts";
import type { ShardingStatus } from "../../api/sharding-config.ts";
import { withBoundedTexts } from "./bounded-texts.ts";
import { convergedVerdict } from "./converged.ts";
import { countsOf } from "./counts.ts";
import { barePods, conditionOf, countText, meshedPods, type StatusFacts, type Verdict, wholeSeconds } from "./facts.ts";
import { handoverOf } from "./handover.ts";
import { lockVerdict } from "./lock-verdict.ts";
import { gainsOf } from "./no-writer.ts";
import { readyVerdict } from "./ready.ts";

/** The new content of each condition; undefined: the condition stays as it is; null: there is none. */
type Verdicts = { readonly [T in ConditionType]: Verdict<T> | undefined | null };

/** The status of an app with a valid spec. */
export function appStatus(facts: StatusFacts): AppStatus {
  const gains = gainsOf(facts);
  const counts = countsOf(facts, gains);
  const handover = handoverOf(facts, gains, counts);
  const converged = convergedVerdict(facts, counts, handover);
  const lock = lockVerdict({ ...facts, before: lockBefore(facts) });
  const intercepted = interceptedVerdict(facts);
  const described = facts.describe?.({ subsets: counts.subsets, desired: facts.plan.desired });
  const verdicts: Verdicts = {
    Ready: readyVerdict(facts, { counts, handover, converged, lock, intercepted }),
    Accepted: acceptedVerdict(facts),
    Converged: converged,
    LockPermitted: lock,
    InjectionReady: facts.injection,
    TrafficIntercepted: intercepted,
    WebhookIntercepted: facts.webhook ?? null,
    Balanced: described?.balanced,
  };
  return withBoundedTexts({
    ...described?.fields,
    ...rolloutOf(facts.previous),
    ...present("labels", facts.labelsAfter?.(previousOf(facts).labels)),
    observedGeneration: facts.generation,
    routeVersion: facts.version,
    routeDigest: facts.plan.digest,
    ...present("ownersHashes", facts.plan.ownersHashes),
    proxies: counts.proxies,
    namespaces: counts.namespaces,
    subsets: counts.subsets,
    ...present("handover", handover.handover),
    ...present("lastHandover", handover.lastHandover),
    ...present("restart", facts.restart),
    conditions: conditionsOf(facts, verdicts),
  });
}

// The rollout controller writes this field of a root's status.
function rolloutOf(previous: AppStatus | undefined): Pick<ShardingStatus, "rollout"> {
  return present("rollout", previousOf({ previous }).rollout);
}

function previousOf({ previous }: Pick<StatusFacts, "previous">): ShardingStatus {
  return (previous ?? {}) as ShardingStatus;
}

/** The previous status with InjectionReady replaced, for a reconcile that learns nothing else. */
export function injectionStatus(facts: Omit<RejectedFacts, "reason" | "message">): AppStatus {
  return withBoundedTexts({ ...facts.previous, conditions: conditionsOf(facts, { InjectionReady: facts.injection }) });
}

type RejectedFacts = Pick<StatusFacts, "generation" | "previous" | "now" | "injection"> & {
  readonly reason: "Invalid";
  readonly message: string;
};

/** The status of an app with a refused spec: the routes stay, and the conditions say why. */
export function rejectedStatus(facts: RejectedFacts): AppStatus {
  const { reason } = facts;
  const message = `${facts.message} (running pods keep their routes; a new pod gets none until the spec is corrected)`;
  const verdict = { status: "False", reason, message } as const;
  return withoutNewRoute(facts, { Ready: verdict, Accepted: verdict, Converged: verdict });
}

type NotPlacedFacts = Omit<RejectedFacts, "reason">;

/** The status of an app with a valid spec for which no route can be compiled yet. */
export function notPlacedStatus(facts: NotPlacedFacts): AppStatus {
  const message = `${facts.message} (running pods keep their routes; a new pod waits)`;
  const verdict = { status: "False", reason: "NotPlaced", message } as const;
  return withoutNewRoute(facts, { Ready: verdict, Accepted: acceptedVerdict({}), Converged: verdict });
}

function withoutNewRoute(facts: Omit<RejectedFacts, "reason" | "message">, verdicts: Partial<Verdicts>): AppStatus {
  const { previous } = facts;
  const unknown = { status: "Unknown", reason: "NotKnown", message: "not checked while the app has no new route" } as const;
  const conditions = conditionsOf(facts, {
    ...verdicts,
    InjectionReady: facts.injection,
    // A condition about pods stays, with the generation that it describes.
    ...(conditionOf(previous, "LockPermitted") === undefined ? { LockPermitted: unknown } : {}),
    ...(conditionOf(previous, "TrafficIntercepted") === undefined ? { TrafficIntercepted: unknown } : {}),
  });
  return withBoundedTexts({ ...previous, observedGeneration: facts.generation, conditions });
}

/** The conditions in order. A condition without a new verdict stays as it is. */
function conditionsOf(facts: Pick<StatusFacts, "generation" | "previous" | "now">, verdicts: Partial<Verdicts>): Condition[] {
  return CONDITION_TYPES.flatMap((type) => {
    const before = conditionOf(facts.previous, type);
    const verdict = verdicts[type];
    if (verdict === null) return [];
    if (verdict === undefined) return before ?? [];
    const { status, reason, message } = verdict;
    const lastTransitionTime = before?.status === status ? before.lastTransitionTime : wholeSeconds(facts.now);
    return { type, status, reason, message, observedGeneration: facts.generation, lastTransitionTime };
  });
}

/** The previous LockPermitted, if it describes this generation. */
function lockBefore({ previous, generation }: StatusFacts): Verdict<"LockPermitted"> | undefined {
  const before = conditionOf(previous, "LockPermitted");
  if (before?.observedGeneration !== generation) return undefined;
  const { status, reason, message } = before;
  return { status, reason: reason as Verdict<"LockPermitted">["reason"], message };
}

function present<K extends string, V>(key: K, value: V | undefined): { readonly [key in K]?: V } {
  return value === undefined ? {} : ({ [key]: value } as { readonly [key in K]: V });
}

/** @param facts without the plan while there is no route */
function acceptedVerdict({ plan }: Partial<Pick<StatusFacts, "plan">>): Verdict<"Accepted"> {
  const warnsOnly = [...(plan?.rules.values() ?? [])].some(({ guard }) => guard === "Warn");
  const message = `the spec is valid${warnsOnly ? "; the guard is Warn: writes to objects of other subsets pass" : ""}`;
  return { status: "True", reason: "Valid", message };
}

function interceptedVerdict({ pods }: Pick<StatusFacts, "pods">): Verdict<"TrafficIntercepted"> {
  const bare = barePods({ pods });
  const [first] = bare;
  if (first !== undefined) {
    const who = bare.length === 1 ? `pod ${first.name} carries` : `${bare.length} running pods, pod ${first.name} first, carry`;
    const message = `${who} no proxy and may write everything: restart to have the proxy injected`;
    return { status: "False", reason: "PodsWithoutProxy", message };
  }
  const meshed = meshedPods({ pods }).length;
  if (meshed === 0) {
    const message = "no pod has the proxy yet, so nothing is isolated: a pod gets it when it is created";
    return { status: "Unknown", reason: "NoPods", message };
  }
  return { status: "True", reason: "AllInjected", message: `${countText(meshed, "pod")} with the proxy, none without` };
}
