// Every word that a status or an Event gives as a reason: the conditions', the waits', the Events'. They are types, so that
// nothing else can be written, and values, so that a test can hold docs/status.md against them.
import type { ConditionType } from "../../api/conditions.ts";

/** What a handover or a restart can wait for. */
export const WAIT_REASONS = [
  "NotAcknowledged",
  "WriteInFlight",
  "NotReported",
  "NotStarted",
  "NotConnected",
  "PodGone",
  "NoProxy",
  "ForeignProxy",
  "SnapshotRefused",
  "Settling",
  "Evicting",
  "PodDisruptionBudget",
  "NotReady",
  "LeaderUnknown",
  "EvictionForbidden",
  "EvictionFailed",
] as const;

export type WaitReason = (typeof WAIT_REASONS)[number];

/** The steps of a handover. */
export const PHASES = ["Draining", "Granting", "Restarting", "Paused", "Dissolving"] as const;

export type Phase = (typeof PHASES)[number];

/** What each condition may give as its reason. */
export const CONDITION_REASONS = {
  Ready: [
    "InSync",
    ...PHASES,
    "Rebuilding",
    "Invalid",
    "SnapshotRefused",
    "OwnershipConflict",
    "LockDenied",
    "PodsWithoutProxy",
    ...WAIT_REASONS,
    "SubsetWithoutPods",
    "ProxiesBehind",
    "ProxyLost",
  ],
  Accepted: ["Valid", "ValidInPart", "Invalid"],
  Converged: [
    "InSync",
    "Moving",
    "Rebuilding",
    "PodsWithoutProxy",
    "ProxiesBehind",
    "Restarting",
    "Paused",
    "Dissolving",
    "Invalid",
  ],
  LockPermitted: ["NoLock", "LockDenied", "NotReviewed", "NotRenamed", "Permitted", "NotKnown"],
  InjectionReady: ["InForce", "WebhookPending", "WebhookTooLarge", "ManagerNamespace", "Invalid", "Dissolving"],
  TrafficIntercepted: ["AllInjected", "PodsWithoutProxy", "NotKnown"],
} as const satisfies Record<ConditionType, readonly string[]>;

export type ReasonOf<T extends ConditionType> = (typeof CONDITION_REASONS)[T][number];

/** Separates a wait that needs help from its remedy, in the message of Ready. */
export const REMEDY_MARK = "; to do: ";
