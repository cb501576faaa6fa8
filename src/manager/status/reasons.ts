// All reasons of conditions, waits and phases. They are types, so the code cannot write another reason, and
// values, so a test can compare docs/reference/status.md with them.
import { PHASES } from "../../api/app-status.ts";
import type { ConditionType } from "../../api/conditions.ts";

/** The reasons for which a handover or a restart waits. */
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

/** Why calls of the operator's webhooks go past the proxies. */
export const WEBHOOK_FAULTS = [
  "PortNotNamed",
  "NoCertificateVolume",
  "CertificateUnreadable",
  "InjectedBefore",
  "NumericTargetPort",
] as const;

/** The possible reasons of each condition. */
export const CONDITION_REASONS = {
  Ready: [
    "InSync",
    ...PHASES,
    "ConfirmationRequired",
    "Rebuilding",
    "Invalid",
    "NotPlaced",
    "SnapshotRefused",
    "OwnershipConflict",
    "LockDenied",
    "LockNotNamed",
    "NotIntercepted",
    ...WEBHOOK_FAULTS,
    ...WAIT_REASONS,
    "SubsetWithoutPods",
    "ProxiesBehind",
    "ProxyLost",
  ],
  Accepted: ["Valid", "Invalid"],
  Converged: [
    "InSync",
    "Moving",
    "Rebuilding",
    "PodsWithoutProxy",
    "ProxiesBehind",
    "Restarting",
    "Paused",
    "ConfirmationRequired",
    "Dissolving",
    "Invalid",
    "NotPlaced",
  ],
  LockPermitted: ["NoLock", "LockDenied", "LockNotNamed", "NotReviewed", "NotRenamed", "Permitted", "NotKnown"],
  InjectionReady: ["InForce", "WebhookPending", "WebhookTooLarge", "ManagerNamespace", "Invalid", "Dissolving"],
  TrafficIntercepted: ["AllInjected", "PodsWithoutProxy", "NoPods", "NotKnown"],
  WebhookIntercepted: ["Intercepted", ...WEBHOOK_FAULTS, "NoPods", "NoService", "NotKnown"],
  Balanced: ["Even", "Skewed", "OneShard"],
} as const satisfies Record<ConditionType, readonly string[]>;

export type ReasonOf<T extends ConditionType> = (typeof CONDITION_REASONS)[T][number];

/** Separates a wait that needs help from its remedy, in the message of Ready. */
export const REMEDY_MARK = "; to do: ";
