// The status of a VirtualApp: counts and conditions, never a list of namespaces, so its size does not grow with the cluster.
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

const waitingSchema = z.object({
  namespace: nameSchema.optional().describe("Namespace that cannot move yet."),
  pod: nameSchema.optional().describe("Pod that is waited for."),
  reason: z.string().max(64).describe("Why, as one word in CamelCase, for example WriteInFlight."),
  since: timestampSchema.describe("When the wait began."),
});

const handoverSchema = z.object({
  from: subsetSchema.describe('Subset that gives namespaces up; "" is the default subset.'),
  to: subsetSchema.describe('Subset that gets them; "" is the default subset.'),
  phase: z.string().max(32).describe("Step that the handover is in, for example Draining."),
  since: timestampSchema.describe("When that step began."),
  done: countSchema.describe("Pods that have acknowledged."),
  total: countSchema.describe("Pods that must acknowledge."),
  waitingOn: z
    .array(waitingSchema)
    .max(MAX_WAITING_ON)
    .optional()
    .meta({ "x-kubernetes-list-type": "atomic" })
    .describe(`What holds it up, the longest waits first, at most ${MAX_WAITING_ON}.`),
});

const subsetStatusSchema = z.object({
  name: subsetSchema.describe('Name of the subset; "" is the default subset.'),
  namespaces: countSchema.describe("Namespaces that it owns."),
  readyPods: countSchema.describe("Its pods that are ready."),
  pods: countSchema.optional().describe("Its pods."),
  lock: nameSchema.optional().describe("Name of its leader-election lock; absent if the app has none."),
  leader: nameSchema.optional().describe("Pod that holds the lock; absent if nobody does."),
});

export const virtualAppStatusSchema = z.object({
  observedGeneration: z.int().min(0).optional().describe("Generation of the object that this status is about."),
  routeVersion: z.int().min(0).optional().describe("Version of the route that the proxies are told to enforce."),
  routeDigest: z.string().max(128).optional().describe("Digest of that route; equal digests mean equal rules."),
  proxies: z
    .object({
      total: countSchema.describe("Pods of the app that carry a proxy."),
      connected: countSchema.describe("Proxies that are connected to the manager."),
      synced: countSchema.describe("Proxies that enforce the newest route."),
    })
    .optional()
    .describe("The proxies of the app."),
  namespaces: z
    .object({
      total: countSchema.describe("Namespaces that the app sees."),
      moving: countSchema.describe("Namespaces that change their owner at the moment."),
      held: countSchema.describe("Namespaces that nobody may write to until their owner is known."),
    })
    .optional()
    .describe("The namespaces of the app."),
  subsets: z
    .array(subsetStatusSchema)
    .max(65)
    .optional()
    .meta(listMap("name"))
    .describe("The subsets with what they own, the default subset included."),
  handover: handoverSchema.optional().describe("The handover that runs now; absent if none does."),
  conditions: conditionsSchema.optional().describe("Ready, Accepted, Converged, LockPermitted, TrafficIntercepted and Stalled."),
});

export type VirtualAppStatus = Immutable<z.output<typeof virtualAppStatusSchema>>;
export type HandoverStatus = Immutable<z.output<typeof handoverSchema>>;
