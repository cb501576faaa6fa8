// The status and the columns of every policy kind. Invariant: the size of the status does not grow with the
// number of pods. Fields are optional and unknown ones are kept, since another version may have written them.
import { optional, z } from "zod";
import type { Immutable } from "../base/json.ts";
import { conditionsSchema, timestampSchema } from "./conditions.ts";
import { atomicList, countSchema, textUpTo } from "./fields.ts";
import { AGE_COLUMN, conditionColumns, integerColumn, type PrinterColumn } from "./kind.ts";

export const MAX_TARGET_STATUS = 64;
export const MAX_RULE_SNAPSHOTS = 64;

const ruleSnapshotSchema = z.object({
  name: textUpTo(253).describe("Name of the rule."),
  state: z.enum(["Opened", "Closed"]).describe("Opened: the rule refuses every request that it matches."),
  lastTransitionTime: optional(timestampSchema).describe("When the state last changed."),
});

const targetStatusSchema = z.object({
  podName: textUpTo(253).describe("Name of the pod."),
  podIP: optional(textUpTo(64)).describe("Address of the pod."),
  configHash: optional(textUpTo(64)).describe("Hash of all policies that the pod's proxy enforces."),
  message: optional(textUpTo(1024)).describe("Why the proxy does not enforce the newest rules; absent if it does."),
  limitingSnapshots: atomicList(ruleSnapshotSchema, MAX_RULE_SNAPSHOTS).describe(
    "Rules whose breakers are not closed, or that have been open.",
  ),
});

export const policyStatusSchema = z.object({
  observedGeneration: optional(z.int().min(0)).describe("Generation of the object that this status is about."),
  specSince: optional(timestampSchema).describe(
    "When the manager first saw this generation. The time of maxDuration begins here.",
  ),
  currentSpecHash: optional(textUpTo(64)).describe("Hash of the spec in force; empty if none is."),
  lastUpdatedTime: optional(timestampSchema).describe("When the manager last wrote this status."),
  conditions: optional(conditionsSchema).describe(
    "Accepted: the spec is valid. Synced: all proxies enforce it. Open: a breaker is open.",
  ),
  targets: optional(
    z.object({
      total: countSchema.describe("Pods with a proxy that the policy is for."),
      synced: countSchema.describe("Proxies that enforce the newest rules."),
      opened: countSchema.describe("Pods with an open breaker. A rule that always refuses requests does not count."),
    }),
  ).describe("Number of pods. Limits hold for each pod by itself: two pods together may send twice as much."),
  targetStatus: atomicList(targetStatusSchema, MAX_TARGET_STATUS).describe(
    `Pods, those with open breakers first. At most ${MAX_TARGET_STATUS} are listed.`,
  ),
});

export type PolicyStatus = Immutable<z.output<typeof policyStatusSchema>>;
export type TargetStatus = Immutable<z.output<typeof targetStatusSchema>>;
export type RuleSnapshot = Immutable<z.output<typeof ruleSnapshotSchema>>;

const ACCEPTED = conditionColumns("Accepted");
export const POLICY_COLUMNS: readonly PrinterColumn[] = [
  ACCEPTED.status,
  ACCEPTED.reason,
  integerColumn("Pods", ".status.targets.total", "Pods that the policy is for."),
  integerColumn("Synced", ".status.targets.synced", "Proxies that enforce the newest rules."),
  integerColumn(
    "Open",
    ".status.targets.opened",
    "Pods with an open breaker. A rule that always refuses requests does not count.",
  ),
  AGE_COLUMN,
  ACCEPTED.message,
];
