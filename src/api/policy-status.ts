// The status of a policy object, for every policy kind. Invariant: bounded, so that its size does not grow
// with the number of pods. Every field is optional and unknown fields are kept, since an older version may
// have written it.
import { z } from "zod";
import type { Immutable } from "../base/immutable.ts";
import { conditionsSchema, timestampSchema } from "./conditions.ts";
import { MAX_INT32 } from "./structural-schema.ts";

/** The maximum number of pods that a status lists. */
export const MAX_TARGET_STATUS = 64;
/** The maximum number of rules that are listed for a pod. */
export const MAX_RULE_SNAPSHOTS = 64;

const countSchema = z.int().min(0).max(MAX_INT32);

const ruleSnapshotSchema = z.object({
  name: z.string().max(253).describe("Name of the rule."),
  state: z.enum(["Opened", "Closed"]).describe("Opened: the rule refuses every request that it matches."),
  lastTransitionTime: timestampSchema.optional().describe("When the state last changed."),
});

const targetStatusSchema = z.object({
  podName: z.string().max(253).describe("Name of the pod."),
  podIP: z.string().max(64).optional().describe("Address of the pod."),
  configHash: z.string().max(64).optional().describe("Hash of all policies that the pod's proxy enforces."),
  message: z.string().max(1024).optional().describe("Why the proxy does not enforce the newest rules; absent if it does."),
  limitingSnapshots: z
    .array(ruleSnapshotSchema)
    .max(MAX_RULE_SNAPSHOTS)
    .optional()
    .meta({ "x-kubernetes-list-type": "atomic" })
    .describe("Rules whose breakers are not closed, or that have been open."),
});

export const policyStatusSchema = z.object({
  observedGeneration: z.int().min(0).optional().describe("Generation of the object that this status is about."),
  specSince: timestampSchema
    .optional()
    .describe("When the manager first saw this generation. The time of maxDuration begins here."),
  currentSpecHash: z.string().max(64).optional().describe("Hash of the spec in force; empty if none is."),
  lastUpdatedTime: timestampSchema.optional().describe("When the manager last wrote this status."),
  conditions: conditionsSchema
    .optional()
    .describe("Accepted: the spec is valid. Synced: all proxies enforce it. Open: a breaker is open."),
  targets: z
    .object({
      total: countSchema.describe("Pods with a proxy that the policy is for."),
      synced: countSchema.describe("Proxies that enforce the newest rules."),
      opened: countSchema.describe("Pods with an open breaker. A rule that always refuses requests does not count."),
    })
    .optional()
    .describe("Number of pods. Limits hold for each pod by itself: two pods together may send twice as much."),
  targetStatus: z
    .array(targetStatusSchema)
    .max(MAX_TARGET_STATUS)
    .optional()
    .meta({ "x-kubernetes-list-type": "atomic" })
    .describe(`Pods, those with open breakers first. At most ${MAX_TARGET_STATUS} are listed.`),
});

export type PolicyStatus = Immutable<z.output<typeof policyStatusSchema>>;
export type TargetStatus = Immutable<z.output<typeof targetStatusSchema>>;
export type RuleSnapshot = Immutable<z.output<typeof ruleSnapshotSchema>>;
