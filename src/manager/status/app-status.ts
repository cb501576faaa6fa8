// Facts and plan -> the status of an app, with a row for each condition. Pure. Invariants: the size of the
// status does not grow with the number of namespaces. Each condition carries the generation that it
// describes. Equal facts give an equal status, except for ages, which change in coarse steps (facts.ts).
import { type AppStatus, MAX_OWNERS_HASHES } from "../../api/app-status.ts";
import type { Condition } from "../../api/conditions.ts";
import type { ShardingStatus } from "../../api/sharding-config.ts";
import { withTransitionTime } from "../../runtime/status-writer.ts";
import { withBoundedTexts } from "./bounded-texts.ts";
import { CONVERGED_REASONS, convergedVerdict } from "./converged.ts";
import { type Counts, countsOf, frozenOf, gainsOf } from "./counts.ts";
import {
  conditionOf,
  INJECTION_REASONS,
  type StatusFacts,
  type Verdict,
  WEBHOOK_FAULTS,
  WEBHOOK_REASONS,
  wholeSeconds,
} from "./facts.ts";
import { type Handover, handoverOf } from "./handover.ts";
import { interceptedVerdict, notIntercepted } from "./intercepted.ts";
import { LOCK_REASONS, lockPermitted } from "./lock-verdict.ts";
import { READY_REASONS, readyVerdict, subsetFaults } from "./ready.ts";
import { REMEDY_MARK, WAIT_REASONS } from "./waits.ts";

/** The new content of conditions by type; undefined: the condition stays as it is; null: there is none. */
type Verdicts = Readonly<Record<string, Verdict | undefined | null>>;

export function appStatus(facts: StatusFacts): AppStatus {
  const gains = gainsOf(facts);
  const counts = countsOf(facts, gains);
  const handover = handoverOf(facts, gains, counts);
  const converged = convergedVerdict(facts, counts, handover);
  const described = facts.describe?.({ subsets: counts.subsets, desired: facts.plan.desired, abroad: counts.abroad });
  const parts = { counts, handover, converged, balanced: described?.balanced };
  const previous = (facts.previous ?? {}) as ShardingStatus;
  const faults = subsetFaults(facts, counts);
  return withBoundedTexts({
    ...described?.fields,
    // Other controllers write these fields of a root's status.
    placement: previous.placement,
    rollout: previous.rollout,
    labels: facts.labelsAfter?.(previous.labels),
    observedGeneration: facts.generation,
    routeVersion: facts.version,
    routeDigest: facts.plan.digest,
    ownersHashes: facts.plan.ownersHashes?.slice(-MAX_OWNERS_HASHES),
    proxies: counts.proxies,
    namespaces: counts.namespaces,
    subsets: counts.subsets.map((subset) => ({ ...subset, reason: faults.get(subset.name) })),
    handover: handover.handover,
    lastHandover: handover.lastHandover,
    restart: facts.restart,
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

type UnroutedFacts = Pick<StatusFacts, "generation" | "previous" | "now" | "injection">;

/** The previous status with InjectionReady replaced, for a reconcile that learns nothing else. */
export function injectionStatus(facts: UnroutedFacts): AppStatus {
  return withBoundedTexts({ ...facts.previous, conditions: conditionsOf(facts, { InjectionReady: facts.injection }) });
}

/** The status of an app with a refused spec: the routes stay, and the conditions say why. */
export function rejectedStatus(facts: UnroutedFacts & { readonly message: string }): AppStatus {
  const message = `${facts.message} (running pods keep their routes; a new pod gets none until the spec is corrected)`;
  const verdict = { status: "False", reason: "Invalid", message } as const;
  return withoutNewRoute(facts, { Ready: verdict, Accepted: verdict, Converged: verdict });
}

/** The status of an app with a valid spec for which no route can be compiled yet. */
export function notPlacedStatus(facts: UnroutedFacts & { readonly message: string }): AppStatus {
  const message = `${facts.message} (running pods keep their routes; a new pod waits)`;
  const verdict = { status: "False", reason: "NotPlaced", message } as const;
  return withoutNewRoute(facts, { Ready: verdict, Accepted: acceptedVerdict({}), Converged: verdict });
}

function withoutNewRoute(facts: UnroutedFacts, verdicts: Verdicts): AppStatus {
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

interface StatusParts {
  readonly counts: Counts;
  readonly handover: Handover;
  readonly converged: Verdict;
  readonly balanced: Verdict | undefined;
}

export interface Warning {
  readonly reason: string;
  /** True if the condition of this status reports what the Warning is about. */
  readonly says: (condition: Condition, status: AppStatus) => boolean;
  /** A new message is reported again, because it names what to correct. */
  readonly repeatsMessage?: true;
}

/** What Ready takes over from another condition. */
interface PartOfReady {
  /** An urgent part has priority over an old wait. A part that is not urgent comes after it. */
  readonly isUrgent: boolean;
  readonly reasons: readonly string[];
  /** The content of Ready; undefined if this verdict does not make Ready False. */
  verdict(own: Verdict, facts: StatusFacts, parts: StatusParts): Verdict | undefined;
}

interface ConditionRow {
  readonly type: string;
  readonly reasons: readonly string[];
  /** If true, an app that has not got a route yet has the condition too, as Unknown. */
  readonly isOfEveryApp?: true;
  /** undefined: the condition stays as it is; null: there is none. Ready is computed from all others. */
  readonly verdict?: (facts: StatusFacts, parts: StatusParts) => Verdict | undefined | null;
  readonly warnings?: readonly Warning[];
  /** The reason of the Normal Event for a condition that is True after it was False. */
  readonly recovery?: string;
  readonly partOfReady?: PartOfReady;
}

const isFalse = ({ status }: Condition) => status === "False";
/** The Warning that has the name of its reason. */
const warningOf = (reason: string, more: Pick<Warning, "repeatsMessage"> = {}): Warning => ({
  reason,
  says: (row) => row.status === "False" && row.reason === reason,
  ...more,
});
const repeatsMessage = { repeatsMessage: true } as const;

const OTHERS: readonly ConditionRow[] = [
  {
    type: "Accepted",
    reasons: ["Valid", "Invalid"],
    verdict: acceptedVerdict,
    warnings: [{ reason: "ConfigRejected", says: isFalse, repeatsMessage: true }],
  },
  {
    type: "Converged",
    reasons: CONVERGED_REASONS,
    verdict: (_facts, { converged }) => converged,
    warnings: [warningOf("ConfirmationRequired", repeatsMessage)],
  },
  {
    type: "LockPermitted",
    reasons: LOCK_REASONS,
    isOfEveryApp: true,
    verdict: lockPermitted,
    warnings: [warningOf("LockDenied", repeatsMessage), warningOf("LockNotNamed", repeatsMessage)],
    recovery: "LockPermitted",
    partOfReady: {
      isUrgent: true,
      reasons: ["LockDenied", "LockNotNamed"],
      verdict: (own) => (own.status === "False" ? own : undefined),
    },
  },
  { type: "InjectionReady", reasons: INJECTION_REASONS, verdict: ({ injection }) => injection },
  {
    type: "TrafficIntercepted",
    reasons: ["AllInjected", "PodsWithoutProxy", "NoPods", "NotKnown"],
    isOfEveryApp: true,
    verdict: interceptedVerdict,
    warnings: [{ reason: "InjectionMissed", says: isFalse }],
    partOfReady: { isUrgent: false, reasons: ["NotIntercepted"], verdict: notIntercepted },
  },
  {
    type: "WebhookIntercepted",
    reasons: WEBHOOK_REASONS,
    verdict: ({ webhook = null }) => webhook,
    warnings: [{ reason: "WebhookNotIntercepted", says: isFalse }],
    partOfReady: {
      isUrgent: true,
      reasons: WEBHOOK_FAULTS,
      verdict: ({ status, reason, message }) =>
        status === "False" ? { status, reason, message: `the operator's webhooks: ${message}` } : undefined,
    },
  },
  {
    type: "Balanced",
    reasons: ["Even", "Skewed", "Joining", "OneShard", "EmptyShards", "PodsWithoutShard", "NotKnown"],
    verdict: (_facts, { balanced }) => balanced,
  },
];

export const CONDITIONS: readonly ConditionRow[] = [
  {
    type: "Ready",
    reasons: [...READY_REASONS, ...OTHERS.flatMap(({ partOfReady }) => partOfReady?.reasons ?? [])],
    warnings: [
      warningOf("SnapshotRefused"),
      warningOf("OwnershipConflict"),
      warningOf("ProxyLost"),
      { reason: "MoveStuck", says: isStuck },
    ],
  },
  ...OTHERS,
];

export const CONDITION_REASONS: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
  CONDITIONS.map(({ type, reasons }) => [type, reasons]),
);

// An old wait is Ready's reason, or its message ends with the remedy. A refused snapshot has its own Warning.
function isStuck({ status, reason, message }: Condition, { handover }: AppStatus): boolean {
  const [wait] = handover?.waitingOn ?? [];
  if (status !== "False" || wait?.reason === "SnapshotRefused") return false;
  const isReason = reason !== "SnapshotRefused" && WAIT_REASONS.some((each) => each === reason);
  return isReason || message.includes(REMEDY_MARK);
}

/** @param facts without the plan while there is no route */
function acceptedVerdict({ plan }: Partial<Pick<StatusFacts, "plan">>): Verdict<"Valid"> {
  const warnsOnly = [...(plan?.rules.values() ?? [])].some(({ guard }) => guard === "Warn");
  const guard = warnsOnly ? ["the guard is Warn: writes to objects of other subsets pass"] : [];
  const count = plan === undefined ? 0 : frozenOf({ plan });
  const frozen =
    count > 0 ? [`${count === 1 ? "1 namespace is" : `${count} namespaces are`} frozen: no pod may write there`] : [];
  return { status: "True", reason: "Valid", message: ["the spec is valid", ...guard, ...frozen].join("; ") };
}
