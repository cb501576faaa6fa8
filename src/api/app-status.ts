// The status of an app, for every source kind. Invariant: it lists no namespaces, so that its size does not
// grow with the cluster. Fields are optional and unknown ones are kept, since another version may have
// written them.
import { optional, z } from "zod";
import type { Immutable } from "../base/json.ts";
import { conditionsSchema, timestampSchema } from "./conditions.ts";
import { atomicList, countSchema, namedList, textUpTo } from "./fields.ts";

const subsetSchema = textUpTo(63);
const nameSchema = textUpTo(253);

/** Keeps a deleted VirtualApp until all pods see everything again, so that no namespace has two owners. */
export const ROUTES_FINALIZER = "ctrlmesh.kruise.io/routes";

export const MAX_WAITING_ON = 8;
export const MAX_OWNERS_HASHES = 8;
export const MAX_PARTIES = 8;
/** The default subset, and the 64 subsets of a VirtualApp, or 64 normal shards and a canary. */
const MAX_SUBSETS = 66;

const partiesSchema = z.array(subsetSchema).max(MAX_PARTIES).optional().meta({ "x-kubernetes-list-type": "atomic" });

const waitingSchema = z.object({
  namespace: optional(nameSchema).describe("Namespace that cannot move yet."),
  pod: optional(nameSchema).describe("Pod that the handover waits for."),
  reason: textUpTo(64).describe("Reason as one word in CamelCase, for example WriteInFlight."),
  since: timestampSchema.describe("When the wait began."),
});

/** The schema lists the phases, but no reasons: a later version may add reasons, which a CRD must accept. */
export const PHASES = ["Draining", "Granting", "Restarting", "Paused", "Dissolving"] as const;

export type Phase = (typeof PHASES)[number];

const secondsSchema = z.number().min(0);

const handoverSchema = z.object({
  from: optional(subsetSchema).describe("Subset that loses namespaces. Absent while paused."),
  to: optional(subsetSchema).describe("Subset that gains the namespaces. Absent while paused or restarting."),
  phase: z.enum(PHASES).describe("Phase of the handover."),
  since: timestampSchema.describe("When this phase began."),
  startedAt: optional(timestampSchema).describe("When the whole handover began."),
  namespaces: optional(countSchema).describe(
    "Number of namespaces that move. While paused, number of namespaces that stay with another owner than the rules demand.",
  ),
  resources: optional(z.boolean()).describe(
    "True if resources also change their owner: resources that are partitioned by label, or shared.",
  ),
  between: partiesSchema.describe(
    `Subsets in the handover, if namespaces move between more than two subsets or in both directions. At most ${MAX_PARTIES} are listed.`,
  ),
  noWriterSeconds: optional(secondsSchema).describe(
    "Longest time so far, in seconds, for which no pod could write to a namespace of this handover.",
  ),
  routeBefore: optional(textUpTo(128)).describe(
    "Digest of the route before the handover. If the route gets this digest again, the handover is undone.",
  ),
  done: countSchema.describe("Pods that have completed this phase."),
  total: countSchema.describe("Pods that must complete this phase."),
  waitingOn: atomicList(waitingSchema, MAX_WAITING_ON).describe(
    `Pods and namespaces that the handover waits for, the longest wait first. At most ${MAX_WAITING_ON} are listed.`,
  ),
});

const lastHandoverSchema = z.object({
  from: subsetSchema.describe("Subset that lost namespaces."),
  to: subsetSchema.describe("Subset that gained the namespaces."),
  namespaces: countSchema.describe("Number of namespaces that moved; 0 if only resources changed their owner."),
  between: partiesSchema.describe(
    `Subsets in the handover, if namespaces moved between more than two subsets or in both directions. At most ${MAX_PARTIES} are listed. \`from\` and \`to\` are two of these.`,
  ),
  finishedAt: timestampSchema.describe("When every connected proxy enforced the new route."),
  noWriterSeconds: optional(secondsSchema).describe(
    "Longest time, in seconds, for which no pod could write to one of the namespaces; absent if the gaining subset had no pod.",
  ),
  result: z.enum(["Moved", "Undone"]).describe("Moved, or Undone if the old rules were restored during the handover."),
});

const restartSchema = z.object({
  subset: subsetSchema.describe("Subset whose pods are restarted."),
  pod: nameSchema.describe("Pod in restart: it is evicted, or its replacement is not ready yet."),
  uid: textUpTo(64).describe("UID of the pod. A later pod of the same name is not evicted."),
  since: timestampSchema.describe("When the restart began to wait for this reason."),
  expected: optional(countSchema).describe(
    "Ready pods of the subset before the eviction was requested; absent before that request.",
  ),
  left: countSchema.describe("Pods that are still to be restarted, including this one."),
  reason: textUpTo(64).describe(
    "Reason of the wait, for example Evicting, PodDisruptionBudget, NotReady, LeaderUnknown, Paused or EvictionForbidden.",
  ),
  message: optional(textUpTo(1024)).describe("The reason as a sentence."),
});

const subsetStatusSchema = z.object({
  name: subsetSchema.describe("Name of the subset; `default` for the pods that match no subset of the spec."),
  namespaces: countSchema.describe(
    "Number of namespaces that the subset owns, also in other clusters whose requests the sidecars serve.",
  ),
  readyPods: countSchema.describe("Number of the subset's ready pods."),
  pods: optional(countSchema).describe("Number of the subset's pods."),
  lock: optional(nameSchema).describe("Name of the subset's leader-election lock; absent if the app has none."),
  leader: optional(nameSchema).describe("Pod that holds the lock; absent if no pod does."),
  waitingSince: optional(timestampSchema).describe(
    "When the subset began to wait for namespaces that no pod may write to yet; absent if there are none.",
  ),
  reason: optional(textUpTo(64)).describe(
    "Why the subset is not ready, judged by its own pods, for example SubsetWithoutPods or ProxyLost; absent if it is ready.",
  ),
});

export const appStatusSchema = z.object({
  observedGeneration: optional(z.int().min(0)).describe("Generation of the object that this status is about."),
  routeVersion: optional(z.int().min(0)).describe("Version of the route that the proxies must enforce."),
  routeDigest: optional(textUpTo(128)).describe(
    "Digest of the route that the proxies must enforce. Equal digests mean equal rules.",
  ),
  ownersHashes: atomicList(textUpTo(128), MAX_OWNERS_HASHES).describe(
    "Hashes of the latest routes, without fences. While the app is paused, the manager keeps only owners of such a route.",
  ),
  proxies: optional(
    z.object({
      total: countSchema.describe("Pods of the app with a proxy."),
      connected: countSchema.describe("Proxies that are connected to the manager."),
      synced: countSchema.describe("Proxies that enforce the newest route."),
      awaySince: optional(timestampSchema).describe(
        "When the first of the missing connections was lost; absent if the proxies of all running pods are connected.",
      ),
    }),
  ).describe("The proxies of the app."),
  namespaces: optional(
    z.object({
      total: countSchema.describe(
        "Namespaces within the limits of the app, also in other clusters whose requests the sidecars serve.",
      ),
      moving: countSchema.describe("Namespaces that change their owner."),
      held: countSchema.describe(
        "Namespaces whose requests wait in a proxy until the owner is known; the maximum of all proxies.",
      ),
      kept: optional(countSchema).describe(
        "Namespaces that a pause keeps with another owner than the rules demand, also in other clusters.",
      ),
      frozen: optional(countSchema).describe("Namespaces in which no pod may write, since the spec has frozen them."),
      gaps: optional(countSchema).describe(
        "Namespaces in which a sharded resource is in no shard of the family: nobody may write it there.",
      ),
      conflicting: optional(countSchema).describe(
        "Namespaces that pods of two subsets may write to, because one of the pods is not under control of this app.",
      ),
    }),
  ).describe("The namespaces of the app."),
  subsets: namedList(subsetStatusSchema, MAX_SUBSETS).describe("The subsets, including the default one."),
  handover: optional(handoverSchema).describe("The running handover or pause; absent if there is none."),
  lastHandover: optional(lastHandoverSchema).describe("The last finished handover."),
  restart: optional(restartSchema).describe("The running restart of pods; absent if there is none."),
  conditions: optional(conditionsSchema).describe("The conditions of the app, Ready first, which summarizes the others."),
});

export type AppStatus = Immutable<z.output<typeof appStatusSchema>>;
export type HandoverStatus = Immutable<z.output<typeof handoverSchema>>;
export type LastHandover = Immutable<z.output<typeof lastHandoverSchema>>;
export type RestartStatus = Immutable<z.output<typeof restartSchema>>;
export type WaitingOn = Immutable<z.output<typeof waitingSchema>>;
