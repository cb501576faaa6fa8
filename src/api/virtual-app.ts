// VirtualApp: one operator, its subsets, and the rules that say which subset owns what. Read by the manager (which compiles
// it into route tables), the admission webhook and the command line. Rules over several fields: virtual-app-rules.ts.
import { z } from "zod";
import { virtualAppAnnotations } from "./annotations.ts";
import { appStatusSchema } from "./app-status.ts";
import { celRules, listMap } from "./extensions.ts";
import type { Immutable } from "./immutable.ts";
import { AGE_COLUMN, conditionPath, type KindDefinition, KRUISE_GROUP } from "./kind.ts";
import { labelsSchema, MAX_LABELS, nonEmptySelector } from "./label-selector.ts";
import { matchLimitSelectorSchema } from "./match-limit-selector.ts";
import { dnsLabelSchema, dnsSubdomainSchema, subsetNameSchema } from "./names.ts";
import { objectMetaSchema } from "./object-meta.ts";
import { type ValidationResult, validate } from "./problems.ts";
import { resourceMatchSchema } from "./resource-match.ts";
import { type Finding, fieldsOf, isObject, withRules } from "./rule.ts";
import { MAKE_ANEW, SPEC_CEL_RULES, specRules } from "./virtual-app-rules.ts";

// Bounds: generous for people, small enough for the API server's estimate of what the CEL rules cost (it multiplies the
// first three; twice the product is refused by Kubernetes 1.36).
const MAX_SUBSETS = 64;
const MAX_ROUTE_RULES = 32;
const MAX_SUB_RULES = 128;
const MAX_MATCHES = 32;

const subRuleSchema = z.strictObject({
  name: dnsLabelSchema.describe("Name of the rule, by which one subset refers to it."),
  match: z
    .array(matchLimitSelectorSchema)
    .min(1)
    .max(MAX_MATCHES)
    .describe("Terms; a namespace that one of them matches is in the rule."),
});

const subsetSchema = z.strictObject({
  name: subsetNameSchema.describe("Name of the subset; it is the suffix of the subset's lock."),
  labels: withRules(labelsSchema.meta({ minProperties: 1, maxProperties: MAX_LABELS }), labelsRequired).describe(
    "Labels of the subset's pods. A pod belongs to the first subset whose labels it has all of, else to the default subset.",
  ),
  routeRules: z
    .array(z.string().min(1).max(63))
    .min(1)
    .max(MAX_ROUTE_RULES)
    .describe("Names of the rules whose namespaces the subset owns. A rule belongs to one subset only."),
});

const controllerSchema = z
  .strictObject({
    leaderElectionName: dnsSubdomainSchema
      .optional()
      .describe(
        "Name of the operator's leader-election lock. Each subset gets a lock NAME---SUBSET of its own. Cannot be changed once it is set.",
      ),
    leaderElection: z
      .strictObject({ lockName: dnsSubdomainSchema.optional().describe("Name of the operator's leader-election lock.") })
      .optional()
      .describe("Older form of leaderElectionName."),
  })
  .meta(
    celRules({
      rule: "!has(self.leaderElectionName) || !has(self.leaderElection) || !has(self.leaderElection.lockName) || self.leaderElectionName == self.leaderElection.lockName",
      message: "leaderElectionName and leaderElection.lockName name the same lock: set one of them, or both to the same name",
    }),
  );

const configurationSchema = z.strictObject({
  controller: controllerSchema.optional().describe("The operator's controllers."),
  webhook: z
    .strictObject({
      certDir: z
        .string()
        .max(1024)
        .regex(/^\//, { error: "must be an absolute path" })
        .describe("Directory in the operator's container with tls.crt and tls.key of its webhook server."),
      port: z.int().min(1).max(65_535).describe("Port that the operator's webhook server listens on."),
    })
    .optional()
    .describe("The operator's own admission webhook server."),
  restConfigOverrides: z
    .strictObject({
      userAgentOrPrefix: z
        .string()
        .max(256)
        .regex(/^[ -~]*$/, { error: "must be printable ASCII, since it goes into a header" })
        .optional()
        .describe(
          "Replaces the User-Agent of the operator's requests; one that ends with \"/\" is put in front of it. The API server's audit log shows it.",
        ),
    })
    .optional()
    .describe("What the proxy changes in the operator's requests."),
});

const routeSchema = z.strictObject({
  globalLimits: z
    .array(matchLimitSelectorSchema)
    .max(MAX_MATCHES)
    .optional()
    .describe("Limits for all pods of the app: what is outside of one of them belongs to no subset."),
  subRules: z
    .array(subRuleSchema)
    .max(MAX_SUB_RULES)
    .optional()
    .meta(listMap("name"))
    .describe("Named rules for subsets to refer to."),
  onLoss: z
    .enum(["Restart", "InPlace", "Resync"])
    .transform((onLoss) => (onLoss === "Resync" ? "InPlace" : onLoss))
    .optional()
    .describe(
      "What happens to the pods of a subset that loses namespaces. Restart (the default): the pods may still read these namespaces, but not write to them, until each pod has been evicted, one at a time, the leader last. InPlace: the pods keep running, and their operator sees the objects as deleted. Resync is the old name of InPlace.",
    ),
  paused: z
    .boolean()
    .optional()
    .describe(
      "True keeps every namespace with its present owner, whatever the rules say, and restarts no pod; only new namespaces go by the rules. What has begun to move is finished.",
    ),
  subsetPublicResources: z.array(resourceMatchSchema).max(32).optional().describe("Resources that every subset sees whole."),
  subsetDefaultOnlyUserAgents: z
    .array(z.string().min(1).max(256))
    .max(64)
    .optional()
    .describe(
      "User agents that are served in the default subset only. In every other subset such a caller owns nothing: its lists are empty, its watches idle, everything else is forbidden, but for the leader-election lock. An entry is the whole User-Agent as the operator sends it; `*` stands for any characters, as in `foo-operator/*` or `*/gc-controller`.",
    ),
});

const virtualAppSpecSchema = withRules(
  z
    .strictObject({
      selector: nonEmptySelector({ rule: "self == oldSelf", message: `cannot be changed: ${MAKE_ANEW}` }).describe(
        "The operator's pods, in the namespace of this object. Must not be empty, and cannot be changed.",
      ),
      configuration: configurationSchema.optional().describe("What the mesh must know of the operator."),
      route: routeSchema.optional().describe("The rules by which namespaces and objects are given to subsets."),
      subsets: z
        .array(subsetSchema)
        .max(MAX_SUBSETS)
        .optional()
        .meta(listMap("name"))
        .describe("Groups of the operator's pods, in order: the first that fits wins. All other pods are the default subset."),
    })
    .meta(celRules(...SPEC_CEL_RULES)),
  specRules,
);

/** The name is also the value of the label that injected pods carry. */
const metadataSchema = withRules(objectMetaSchema.extend({ name: z.string().max(63).exactOptional() }), virtualAppAnnotations);

export const virtualAppSchema = z
  .strictObject({
    apiVersion: z.literal(`${KRUISE_GROUP}/v1alpha1`),
    kind: z.literal("VirtualApp"),
    metadata: metadataSchema,
    spec: virtualAppSpecSchema.describe("What the app is and how it is divided."),
    // A status that this version cannot read is no status; the manager writes it anew.
    status: appStatusSchema.optional().catch(undefined).describe("What the manager last saw. Written by the manager only."),
  })
  .describe("VirtualApp divides one operator into subsets of pods and says which subset owns which namespaces.");

export type VirtualApp = Immutable<z.output<typeof virtualAppSchema>>;
export type VirtualAppSpec = Immutable<z.output<typeof virtualAppSpecSchema>>;
export type Subset = Immutable<z.output<typeof subsetSchema>>;

/** The object if it is a good VirtualApp, else every problem it has. Takes anything and never throws. */
export function validateVirtualApp(object: unknown): ValidationResult<VirtualApp> {
  return validate(virtualAppSchema, object);
}

/** The name of the operator's lock in either form, or "" if it has none. */
export function lockNameOf(spec: VirtualAppSpec): string {
  const controller = spec.configuration?.controller;
  return controller?.leaderElectionName ?? controller?.leaderElection?.lockName ?? "";
}

function* labelsRequired(labels: unknown): Iterable<Finding> {
  if (isObject(labels) && Object.keys(fieldsOf(labels)).length === 0)
    yield { path: [], message: "must not be empty: without labels every pod would be in the subset" };
}

export const virtualAppKind: KindDefinition = {
  group: KRUISE_GROUP,
  version: "v1alpha1",
  kind: "VirtualApp",
  plural: "virtualapps",
  singular: "virtualapp",
  shortNames: ["vapp"],
  scope: "Namespaced",
  columns: [
    {
      name: "Ready",
      type: "string",
      description: "Whether the app is accepted, in sync and complete.",
      jsonPath: conditionPath("Ready", "status"),
    },
    { name: "Reason", type: "string", description: "Why, in one word.", jsonPath: conditionPath("Ready", "reason") },
    { name: "Proxies", type: "integer", description: "Pods of the app that carry a proxy.", jsonPath: ".status.proxies.total" },
    {
      name: "Synced",
      type: "integer",
      description: "Proxies that enforce the newest route.",
      jsonPath: ".status.proxies.synced",
    },
    { name: "Namespaces", type: "integer", description: "Namespaces that the app sees.", jsonPath: ".status.namespaces.total" },
    {
      name: "Moving",
      type: "integer",
      description: "Namespaces that change their owner at the moment.",
      jsonPath: ".status.namespaces.moving",
    },
    {
      name: "Waiting-For",
      type: "string",
      description: "Pod that has been waited for longest.",
      jsonPath: ".status.handover.waitingOn[0].pod",
    },
    { name: "Why", type: "string", description: "What it waits for.", jsonPath: ".status.handover.waitingOn[0].reason" },
    AGE_COLUMN,
    { name: "Route", type: "integer", description: "Version of the route.", jsonPath: ".status.routeVersion", priority: 1 },
    {
      name: "Message",
      type: "string",
      description: "Why, in a sentence.",
      jsonPath: conditionPath("Ready", "message"),
      priority: 1,
    },
  ],
  schema: virtualAppSchema,
};
