// The status of an app, for every source kind. Invariant: the status has counts and conditions and no list of
// namespaces, so that its size does not grow with the cluster. Every field is optional and unknown fields are
// kept, since an older version may have written it.
import { z } from "zod";
import type { Immutable } from "../base/immutable.ts";
import { conditionsSchema, timestampSchema } from "./conditions.ts";
import { listMap } from "./extensions.ts";
import { MAX_INT32 } from "./structural-schema.ts";

const countSchema = z.int().min(0).max(MAX_INT32);
const subsetSchema = z.string().max(63);
const nameSchema = z.string().max(253);

/** The maximum number of entries in `handover.waitingOn`. */
export const MAX_WAITING_ON = 8;

/** The maximum number of routes whose hashes are kept. */
export const MAX_OWNERS_HASHES = 8;

/** The maximum number of subsets in `between`. */
export const MAX_PARTIES = 8;

/** 64 subsets of a VirtualApp, or 64 normal shards and a canary; and the default subset. */
const MAX_SUBSETS = 66;

const partiesSchema = z.array(subsetSchema).max(MAX_PARTIES).optional().meta({ "x-kubernetes-list-type": "atomic" });

const waitingSchema = z.object({
  namespace: nameSchema.optional().describe("Namespace that cannot move yet."),
  pod: nameSchema.optional().describe("Pod that the handover waits for."),
  reason: z.string().max(64).describe("Reason as one word in CamelCase, for example WriteInFlight."),
  since: timestampSchema.describe("When the wait began."),
});

/**
 * The steps of a handover. They are an enum in the schema. The reasons of conditions and waits are not: as in
 * Kubernetes, a later version may add a reason, and a CRD of this version must accept it.
 */
export const PHASES = ["Draining", "Granting", "Restarting", "Paused", "Dissolving"] as const;

export type Phase = (typeof PHASES)[number];

const secondsSchema = z.number().min(0);

const handoverSchema = z.object({
  from: subsetSchema.optional().describe("Subset that loses namespaces. Absent while paused."),
  to: subsetSchema.optional().describe("Subset that gains the namespaces. Absent while paused or restarting."),
  phase: z.enum(PHASES).describe("Phase of the handover."),
  since: timestampSchema.describe("When this phase began."),
  startedAt: timestampSchema.optional().describe("When the whole handover began."),
  namespaces: countSchema
    .optional()
    .describe(
      "Number of namespaces that move. While paused, number of namespaces that stay with another owner than the rules demand.",
    ),
  resources: z
    .boolean()
    .optional()
    .describe("True if resources also change their owner: resources that are partitioned by label, or shared."),
  between: partiesSchema.describe(
    `Subsets in the handover, if namespaces move between more than two subsets or in both directions. At most ${MAX_PARTIES} are listed.`,
  ),
  noWriterSeconds: secondsSchema
    .optional()
    .describe("Longest time so far, in seconds, for which no pod could write to a namespace of this handover."),
  routeBefore: z
    .string()
    .max(128)
    .optional()
    .describe("Digest of the route before the handover. If the route gets this digest again, the handover is undone."),
  done: countSchema.describe("Pods that have completed this phase."),
  total: countSchema.describe("Pods that must complete this phase."),
  waitingOn: z
    .array(waitingSchema)
    .max(MAX_WAITING_ON)
    .optional()
    .meta({ "x-kubernetes-list-type": "atomic" })
    .describe(`Pods and namespaces that the handover waits for, the longest wait first. At most ${MAX_WAITING_ON} are listed.`),
});

const lastHandoverSchema = z.object({
  from: subsetSchema.describe("Subset that lost namespaces."),
  to: subsetSchema.describe("Subset that gained the namespaces."),
  namespaces: countSchema.describe("Number of namespaces that moved; 0 if only resources changed their owner."),
  between: partiesSchema.describe(
    `Subsets in the handover, if namespaces moved between more than two subsets or in both directions. At most ${MAX_PARTIES} are listed. \`from\` and \`to\` are two of these.`,
  ),
  finishedAt: timestampSchema.describe("When every connected proxy enforced the new route."),
  noWriterSeconds: secondsSchema
    .optional()
    .describe(
      "Longest time, in seconds, for which no pod could write to one of the namespaces; absent if the gaining subset had no pod.",
    ),
  result: z.enum(["Moved", "Undone"]).describe("Moved, or Undone if the old rules were restored during the handover."),
});

const restartSchema = z.object({
  subset: subsetSchema.describe("Subset whose pods are restarted."),
  pod: nameSchema.describe("Pod in restart: it is evicted, or its replacement is not ready yet."),
  uid: z.string().max(64).describe("UID of the pod. A later pod of the same name is not evicted."),
  since: timestampSchema.describe("When the restart began to wait for this reason."),
  expected: countSchema
    .optional()
    .describe("Ready pods of the subset before the eviction was requested; absent before that request."),
  left: countSchema.describe("Pods that are still to be restarted, including this one."),
  reason: z
    .string()
    .max(64)
    .describe(
      "Reason of the wait, for example Evicting, PodDisruptionBudget, NotReady, LeaderUnknown, Paused or EvictionForbidden.",
    ),
  message: z.string().max(1024).optional().describe("The reason as a sentence."),
});

const subsetStatusSchema = z.object({
  name: subsetSchema.describe("Name of the subset; `default` for the pods that match no subset of the spec."),
  namespaces: countSchema.describe("Number of namespaces that the subset owns."),
  readyPods: countSchema.describe("Number of the subset's ready pods."),
  pods: countSchema.optional().describe("Number of the subset's pods."),
  lock: nameSchema.optional().describe("Name of the subset's leader-election lock; absent if the app has none."),
  leader: nameSchema.optional().describe("Pod that holds the lock; absent if no pod does."),
  waitingSince: timestampSchema
    .optional()
    .describe("When the subset began to wait for namespaces that no pod may write to yet; absent if there are none."),
});

export const appStatusSchema = z.object({
  observedGeneration: z.int().min(0).optional().describe("Generation of the object that this status is about."),
  routeVersion: z.int().min(0).optional().describe("Version of the route that the proxies must enforce."),
  routeDigest: z
    .string()
    .max(128)
    .optional()
    .describe("Digest of the route that the proxies must enforce. Equal digests mean equal rules."),
  ownersHashes: z
    .array(z.string().max(128))
    .max(MAX_OWNERS_HASHES)
    .optional()
    .meta({ "x-kubernetes-list-type": "atomic" })
    .describe(
      "Hashes of the latest routes, without fences. While the app is paused, the manager keeps only owners of such a route.",
    ),
  proxies: z
    .object({
      total: countSchema.describe("Pods of the app with a proxy."),
      connected: countSchema.describe("Proxies that are connected to the manager."),
      synced: countSchema.describe("Proxies that enforce the newest route."),
      awaySince: timestampSchema
        .optional()
        .describe("When the first of the missing connections was lost; absent if the proxies of all running pods are connected."),
    })
    .optional()
    .describe("The proxies of the app."),
  namespaces: z
    .object({
      total: countSchema.describe("Namespaces within the limits of the app."),
      moving: countSchema.describe("Namespaces that change their owner."),
      held: countSchema.describe(
        "Namespaces whose requests wait in a proxy until the owner is known; the maximum of all proxies.",
      ),
      kept: countSchema.optional().describe("Namespaces that a pause keeps with another owner than the rules demand."),
      gaps: countSchema
        .optional()
        .describe("Namespaces in which a sharded resource is in no shard of the family: nobody may write it there."),
      conflicting: countSchema
        .optional()
        .describe("Namespaces that pods of two subsets may write to, because one of the pods is not under control of this app."),
    })
    .optional()
    .describe("The namespaces of the app."),
  subsets: z
    .array(subsetStatusSchema)
    .max(MAX_SUBSETS)
    .optional()
    .meta(listMap("name"))
    .describe("The subsets, including the default one."),
  handover: handoverSchema.optional().describe("The running handover or pause; absent if there is none."),
  lastHandover: lastHandoverSchema.optional().describe("The last finished handover."),
  restart: restartSchema.optional().describe("The running restart of pods; absent if there is none."),
  conditions: conditionsSchema.optional().describe("The conditions of the app, Ready first, which summarizes the others."),
});

export type AppStatus = Immutable<z.output<typeof appStatusSchema>>;
export type HandoverStatus = Immutable<z.output<typeof handoverSchema>>;
export type LastHandover = Immutable<z.output<typeof lastHandoverSchema>>;
export type RestartStatus = Immutable<z.output<typeof restartSchema>>;
export type WaitingOn = Immutable<z.output<typeof waitingSchema>>;
