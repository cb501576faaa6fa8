// The status of an app, the same for every source kind: counts and conditions, never a list of namespaces, so its size does not grow with the cluster.
// Every field is optional and nothing is refused for being unknown: objects keep the status that an older version wrote.
import { z } from "zod";
import { conditionsSchema, timestampSchema } from "./conditions.ts";
import { listMap } from "./extensions.ts";
import type { Immutable } from "./immutable.ts";
import { MAX_INT32 } from "./structural-schema.ts";

const countSchema = z.int().min(0).max(MAX_INT32);
const subsetSchema = z.string().max(63);
const nameSchema = z.string().max(253);

/** How many entries of a handover's `waitingOn` are shown at most. */
export const MAX_WAITING_ON = 8;

/** How many subsets of a handover that goes more than one way are named at most. */
export const MAX_PARTIES = 8;

const partiesSchema = z.array(subsetSchema).max(MAX_PARTIES).optional().meta({ "x-kubernetes-list-type": "atomic" });

const waitingSchema = z.object({
  namespace: nameSchema.optional().describe("Namespace that cannot move yet."),
  pod: nameSchema.optional().describe("Pod that is waited for."),
  reason: z.string().max(64).describe("Why, as one word in CamelCase, for example WriteInFlight."),
  since: timestampSchema.describe("When the wait began."),
});

const secondsSchema = z.number().min(0);

const handoverSchema = z.object({
  from: subsetSchema.optional().describe("Subset that gives namespaces up. Absent while paused."),
  to: subsetSchema.optional().describe("Subset that gets them. Absent while paused or restarting."),
  phase: z.string().max(32).describe("Step that the handover is in: Draining, Granting, Restarting, Paused or Dissolving."),
  since: timestampSchema.describe("When that step began."),
  startedAt: timestampSchema.optional().describe("When the whole handover began."),
  namespaces: countSchema.optional().describe("Namespaces that it moves; while paused, those that stay with another owner."),
  resources: z.boolean().optional().describe("It also divides resources anew: those that labels divide, or that are public."),
  between: partiesSchema.describe(`The subsets that take part if it goes more than one way, at most ${MAX_PARTIES}.`),
  noWriterSeconds: secondsSchema
    .optional()
    .describe("Longest time so far for which nobody could write to a namespace that has moved in this handover."),
  routeBefore: z.string().max(128).optional().describe("Digest of the route before it began; the same again means undone."),
  done: countSchema.describe("Pods that have done this step."),
  total: countSchema.describe("Pods that must do it."),
  waitingOn: z
    .array(waitingSchema)
    .max(MAX_WAITING_ON)
    .optional()
    .meta({ "x-kubernetes-list-type": "atomic" })
    .describe(`What holds it up, the longest waits first, at most ${MAX_WAITING_ON}.`),
});

const lastHandoverSchema = z.object({
  from: subsetSchema.describe("Subset that gave namespaces up."),
  to: subsetSchema.describe("Subset that got them."),
  namespaces: countSchema.describe("Namespaces that moved; 0 if only resources were divided anew."),
  between: partiesSchema.describe(
    `The subsets that took part if it went more than one way, at most ${MAX_PARTIES}; \`from\` and \`to\` are two of them.`,
  ),
  finishedAt: timestampSchema.describe("When every proxy that is connected enforced it."),
  noWriterSeconds: secondsSchema
    .optional()
    .describe("Longest time for which nobody could write to one of them; absent if there was nobody to give them to."),
  result: z.enum(["Moved", "Undone"]).describe("Whether they moved, or the rules were put back meanwhile."),
});

const restartSchema = z.object({
  subset: subsetSchema.describe("Subset whose pods are restarted."),
  pod: nameSchema.describe("Pod that is evicted, or whose successor is waited for."),
  uid: z.string().max(64).describe("Its uid, so that no other pod of that name is evicted in its place."),
  since: timestampSchema.describe("Since when it waits for what the reason says."),
  expected: countSchema
    .optional()
    .describe("Ready pods that the subset had before the eviction was asked for; absent if it was not yet asked for."),
  left: countSchema.describe("Pods that have still to be restarted, this one included."),
  reason: z
    .string()
    .max(64)
    .describe(
      "What it waits for, for example Evicting, PodDisruptionBudget, NotReady, LeaderUnknown, Paused or EvictionForbidden.",
    ),
  message: z.string().max(1024).optional().describe("The same in a sentence."),
});

const subsetStatusSchema = z.object({
  name: subsetSchema.describe("Name of the subset."),
  namespaces: countSchema.describe("Namespaces that it owns."),
  readyPods: countSchema.describe("Its pods that are ready."),
  pods: countSchema.optional().describe("Its pods."),
  lock: nameSchema.optional().describe("Name of its leader-election lock; absent if the app has none."),
  leader: nameSchema.optional().describe("Pod that holds the lock; absent if nobody does."),
  waitingSince: timestampSchema
    .optional()
    .describe("Since when it is to get namespaces to which nobody may write yet; absent if none."),
});

export const appStatusSchema = z.object({
  observedGeneration: z.int().min(0).optional().describe("Generation of the object that this status is about."),
  routeVersion: z.int().min(0).optional().describe("Version of the route that the proxies are told to enforce."),
  routeDigest: z.string().max(128).optional().describe("Digest of that route; equal digests mean equal rules."),
  proxies: z
    .object({
      total: countSchema.describe("Pods of the app that carry a proxy."),
      connected: countSchema.describe("Proxies that are connected to the manager."),
      synced: countSchema.describe("Proxies that enforce the newest route."),
      awaySince: timestampSchema.optional().describe("Since when proxies of running pods are not connected; absent if none."),
    })
    .optional()
    .describe("The proxies of the app."),
  namespaces: z
    .object({
      total: countSchema.describe("Namespaces that the app sees."),
      moving: countSchema.describe("Namespaces that change their owner at the moment."),
      held: countSchema.describe("Namespaces whose requests wait in a proxy until their owner is known; the most of one proxy."),
      kept: countSchema.optional().describe("Namespaces that a pause keeps with another owner than the rules give them."),
      conflicting: countSchema
        .optional()
        .describe("Namespaces that pods of two subsets may write to, because one of them is not under this app's control."),
    })
    .optional()
    .describe("The namespaces of the app."),
  subsets: z
    .array(subsetStatusSchema)
    .max(65)
    .optional()
    .meta(listMap("name"))
    .describe("The subsets with what they own, the default subset included."),
  handover: handoverSchema.optional().describe("The handover that runs now, or the pause; absent if there is none."),
  lastHandover: lastHandoverSchema.optional().describe("The last handover that was finished."),
  restart: restartSchema.optional().describe("The restart of pods that runs now; absent if none does."),
  conditions: conditionsSchema
    .optional()
    .describe("Ready, Accepted, Converged, LockPermitted, InjectionReady, TrafficIntercepted and Stalled."),
});

export type AppStatus = Immutable<z.output<typeof appStatusSchema>>;
export type HandoverStatus = Immutable<z.output<typeof handoverSchema>>;
export type LastHandover = Immutable<z.output<typeof lastHandoverSchema>>;
export type RestartStatus = Immutable<z.output<typeof restartSchema>>;
export type WaitingOn = Immutable<z.output<typeof waitingSchema>>;
