// The status and the columns of every policy kind. Invariant: the size of the status does not grow with the
// number of pods. Fields are optional and unknown ones are kept, since another version may have written them.
import { optional, z } from "zod";
import type { Immutable } from "../base/json.ts";
import { conditionsSchema, timestampSchema } from "./conditions.ts";
import { atomicList, countSchema, textUpTo } from "./fields.ts";
import { AGE_COLUMN, conditionColumns, integerColumn, type PrinterColumn, textColumn } from "./kind.ts";

export const MAX_TARGET_STATUS = 64;
export const MAX_RULE_SNAPSHOTS = 64;
/** In all pods of a status together, which is far below the size of an object that etcd takes. */
export const MAX_ALL_SNAPSHOTS = 512;

const ruleSnapshotSchema = z.object({
  name: textUpTo(253).describe("Name of the rule."),
  state: z
    .enum(["Opened", "HalfOpen", "Closed"])
    .describe(
      "Opened: the rule refuses every request that it matches. HalfOpen: the time of the breaker is over, and the next requests test the server. Closed: the rule is in force, and its breaker, if it has one, is closed.",
    ),
  cause: optional(textUpTo(256)).describe("Why the breaker opened, with the figure; absent if it is closed."),
  lastTransitionTime: optional(timestampSchema).describe("When the state last changed; absent if it never did."),
});

const targetStatusSchema = z.object({
  podName: textUpTo(253).describe("Name of the pod."),
  podIP: optional(textUpTo(64)).describe("Address of the pod."),
  configHash: optional(textUpTo(64)).describe("Hash of all policies that the pod's proxy enforces."),
  message: optional(textUpTo(1024)).describe("Why the proxy does not enforce the newest rules; absent if it does."),
  limitingSnapshots: atomicList(ruleSnapshotSchema, MAX_RULE_SNAPSHOTS).describe(
    `Rules of the policy that limit requests, those with open breakers first. All pods together have at most ${MAX_ALL_SNAPSHOTS}.`,
  ),
});

export const policyStatusSchema = z.object({
  observedGeneration: optional(z.int().min(0)).describe("Generation of the object that this status is about."),
  specSince: optional(timestampSchema).describe(
    "When the manager first saw this generation. The time of maxDuration begins here.",
  ),
  currentSpecHash: optional(textUpTo(64)).describe("Hash of the spec in force; empty if none is."),
  mode: optional(z.enum(["Enforce", "Shadow", "Disabled"])).describe(
    "Mode of the spec in force. Disabled: something switches the policy off, which the condition Accepted names.",
  ),
  endsAt: optional(timestampSchema).describe("When the policy ends by itself; absent if it does not."),
  lastUpdatedTime: optional(timestampSchema).describe("When the manager last wrote this status."),
  conditions: optional(conditionsSchema).describe(
    "Ready: the worst of the others. Accepted: the spec is valid. Synced: all proxies enforce it. Open: a breaker is open. Active: faults are in effect.",
  ),
  targets: optional(
    z.object({
      total: countSchema.describe("Pods with a proxy that the policy is for."),
      synced: countSchema.describe("Proxies that enforce the newest rules."),
      opened: countSchema.describe("Pods with an open breaker. A rule that always refuses requests does not count."),
    }),
  ).describe(
    "Number of pods. Limits hold for each pod by itself, so two pods together may send twice as much, unless bucket.per is Policy.",
  ),
  targetStatus: atomicList(targetStatusSchema, MAX_TARGET_STATUS).describe(
    `Pods, those with open breakers first. At most ${MAX_TARGET_STATUS} are listed.`,
  ),
});

export type PolicyStatus = Immutable<z.output<typeof policyStatusSchema>>;
export type TargetStatus = Immutable<z.output<typeof targetStatusSchema>>;
export type RuleSnapshot = Immutable<z.output<typeof ruleSnapshotSchema>>;

const READY = conditionColumns("Ready");
export const POLICY_COLUMNS: readonly PrinterColumn[] = [
  READY.status,
  READY.reason,
  textColumn("Mode", ".status.mode", "Mode of the spec in force: Enforce, Shadow or Disabled."),
  integerColumn("Pods", ".status.targets.total", "Pods that the policy is for."),
  integerColumn("Synced", ".status.targets.synced", "Proxies that enforce the newest rules."),
  integerColumn(
    "Open",
    ".status.targets.opened",
    "Pods with an open breaker. A rule that always refuses requests does not count.",
  ),
  AGE_COLUMN,
  READY.message,
];
