// The conditions of an app: one row each, in the order of the status. The order, the reasons, the Warnings
// and what Ready takes over come from this table only, so a new condition is a row here and the file of its
// verdict. Pure. Invariant: every Warning reports the change of a condition, with the condition's message, so
// Events contain nothing that the status lacks.
import type { AppStatus } from "../../api/app-status.ts";
import type { Condition } from "../../api/conditions.ts";
import { CONVERGED_REASONS } from "./converged.ts";
import type { Counts } from "./counts.ts";
import {
  barePods,
  conditionOf,
  countText,
  INJECTION_REASONS,
  meshedPods,
  type StatusFacts,
  type Verdict,
  WEBHOOK_FAULTS,
  WEBHOOK_REASONS,
} from "./facts.ts";
import type { Handover } from "./handover.ts";
import { LOCK_REASONS, lockPermitted } from "./lock-verdict.ts";
import { READY_REASONS } from "./ready.ts";
import { REMEDY_MARK, WAIT_REASONS } from "./wait-text.ts";

/** The parts of the status that conditions are computed from. */
export interface StatusParts {
  readonly counts: Counts;
  readonly handover: Handover;
  readonly converged: Verdict;
  readonly balanced: Verdict | undefined;
}

/** A Warning and the state of the condition that it reports. */
export interface Warning {
  readonly reason: string;
  /** True if the condition of this status reports what the Warning is about. */
  readonly says: (condition: Condition, status: AppStatus) => boolean;
  /**
   * If true, a new message is reported again, because it names what to correct. Otherwise only the beginning
   * is reported.
   */
  readonly repeatsMessage?: true;
}

/** What Ready takes over from another condition. */
export interface PartOfReady {
  /** An urgent part has priority over an old wait. A part that is not urgent comes after it. */
  readonly isUrgent: boolean;
  /** The reasons that Ready gets from this condition. */
  readonly reasons: readonly string[];
  /** The content of Ready; undefined if this verdict does not make Ready False. */
  verdict(own: Verdict, facts: StatusFacts, parts: StatusParts): Verdict | undefined;
}

export interface ConditionRow {
  readonly type: string;
  readonly reasons: readonly string[];
  /** If true, an app that has not got a route yet has the condition too, as Unknown. */
  readonly isOfEveryApp?: true;
  /**
   * The content of the condition; undefined: the condition stays as it is; null: the app has no such
   * condition. Ready has no function: it is computed from all others.
   */
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
  { type: "Balanced", reasons: ["Even", "Skewed", "OneShard"], verdict: (_facts, { balanced }) => balanced },
];

/** All conditions, Ready first. */
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

/** The possible reasons of each condition. */
export const CONDITION_REASONS: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
  CONDITIONS.map(({ type, reasons }) => [type, reasons]),
);

// An old wait is Ready's reason, or its message ends with the wait and the remedy. A wait for a refused
// snapshot has a Warning of its own.
function isStuck({ status, reason, message }: Condition, { handover }: AppStatus): boolean {
  const [wait] = handover?.waitingOn ?? [];
  if (status !== "False" || wait?.reason === "SnapshotRefused") return false;
  const isReason = reason !== "SnapshotRefused" && WAIT_REASONS.some((each) => each === reason);
  return isReason || message.includes(REMEDY_MARK);
}

/** @param facts without the plan while there is no route */
export function acceptedVerdict({ plan }: Partial<Pick<StatusFacts, "plan">>): Verdict<"Valid"> {
  const warnsOnly = [...(plan?.rules.values() ?? [])].some(({ guard }) => guard === "Warn");
  const message = `the spec is valid${warnsOnly ? "; the guard is Warn: writes to objects of other subsets pass" : ""}`;
  return { status: "True", reason: "Valid", message };
}

function interceptedVerdict({ pods }: Pick<StatusFacts, "pods">): Verdict {
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

/** The mesh is not in force for every pod. Of an app that is being deleted, this is the aim. */
function notIntercepted(own: Verdict, facts: StatusFacts, { handover }: StatusParts): Verdict | undefined {
  if (own.status === "True" || handover.handover?.phase === "Dissolving") return undefined;
  return { status: "False", reason: "NotIntercepted", message: own.message + neverInjectedText(facts) };
}

/** Explains an app whose pods never get a proxy because it is in the manager's namespace. */
function neverInjectedText({ injection: next, previous }: StatusFacts): string {
  const injection = next ?? conditionOf(previous, "InjectionReady");
  return injection?.reason === "ManagerNamespace" ? `; ${injection.message}` : "";
}
