// Facts and plan -> the status of an app. Pure. Invariants: the size of the status does not grow with the
// number of namespaces. Each condition carries the generation that it describes. Equal facts give an equal
// status, except for ages, which change in coarse steps (ages.ts).
import type { AppStatus } from "../../api/app-status.ts";
import type { Condition } from "../../api/conditions.ts";
import type { ShardingStatus } from "../../api/sharding-config.ts";
import { withTransitionTime } from "../../runtime/status-writer.ts";
import { withBoundedTexts } from "./bounded-texts.ts";
import { acceptedVerdict, CONDITIONS, type StatusParts } from "./conditions.ts";
import { convergedVerdict } from "./converged.ts";
import { countsOf } from "./counts.ts";
import { conditionOf, type StatusFacts, type Verdict, wholeSeconds } from "./facts.ts";
import { handoverOf } from "./handover.ts";
import { gainsOf } from "./no-writer.ts";
import { readyVerdict } from "./ready.ts";

/**
 * The new content of conditions by their type; undefined: the condition stays as it is; null: there is none.
 */
type Verdicts = Readonly<Record<string, Verdict | undefined | null>>;

/** The status of an app with a valid spec. */
export function appStatus(facts: StatusFacts): AppStatus {
  const gains = gainsOf(facts);
  const counts = countsOf(facts, gains);
  const handover = handoverOf(facts, gains, counts);
  const converged = convergedVerdict(facts, counts, handover);
  const described = facts.describe?.({ subsets: counts.subsets, desired: facts.plan.desired });
  const parts = { counts, handover, converged, balanced: described?.balanced };
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
    conditions: conditionsOf(facts, verdictsOf(facts, parts)),
  });
}

function verdictsOf(facts: StatusFacts, parts: StatusParts): Verdicts {
  const verdicts = Object.fromEntries(CONDITIONS.map(({ type, verdict }) => [type, verdict?.(facts, parts)]));
  const partsOfReady = CONDITIONS.flatMap(({ type, partOfReady }) => {
    const ownVerdict = verdicts[type];
    const verdict = ownVerdict && partOfReady?.verdict(ownVerdict, facts, parts);
    return verdict && partOfReady ? [{ verdict, isUrgent: partOfReady.isUrgent }] : [];
  });
  const urgent = partsOfReady.filter(({ isUrgent }) => isUrgent).map(({ verdict }) => verdict);
  const others = partsOfReady.filter(({ isUrgent }) => !isUrgent).map(({ verdict }) => verdict);
  const Ready = readyVerdict(facts, { ...parts, urgent, others });
  return { ...verdicts, Ready };
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

function withoutNewRoute(facts: Omit<RejectedFacts, "reason" | "message">, verdicts: Verdicts): AppStatus {
  const { previous } = facts;
  const unknown = { status: "Unknown", reason: "NotKnown", message: "not checked while the app has no new route" } as const;
  const everyApps = CONDITIONS.filter(({ isOfEveryApp }) => isOfEveryApp);
  const missing = everyApps.filter(({ type }) => conditionOf(previous, type) === undefined);
  const conditions = conditionsOf(facts, {
    ...verdicts,
    InjectionReady: facts.injection,
    // A condition about pods stays, with the generation that it describes.
    ...Object.fromEntries(missing.map(({ type }) => [type, unknown])),
  });
  return withBoundedTexts({ ...previous, observedGeneration: facts.generation, conditions });
}

/** The conditions in order. A condition without a new verdict stays as it is. */
function conditionsOf(facts: Pick<StatusFacts, "generation" | "previous" | "now">, verdicts: Verdicts): Condition[] {
  return CONDITIONS.flatMap(({ type }) => {
    const before = conditionOf(facts.previous, type);
    const verdict = verdicts[type];
    if (verdict === null) return [];
    if (verdict === undefined) return before ?? [];
    const { status, reason, message } = verdict;
    const condition = { type, status, reason, message, observedGeneration: facts.generation };
    return withTransitionTime(condition, before, wholeSeconds(facts.now));
  });
}

function present<K extends string, V>(key: K, value: V | undefined): { readonly [key in K]?: V } {
  return value === undefined ? {} : ({ [key]: value } as { readonly [key in K]: V });
}
