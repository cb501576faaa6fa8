// The kind VirtualApp: one operator, its subsets, and the rules of ownership.
import { optional, z } from "zod";
import type { Immutable } from "../base/json.ts";
import { appStatusSchema } from "./app-status.ts";
import { celRules } from "./extensions.ts";
import { int, namedList, nonEmptyList, textUpTo } from "./fields.ts";
import { AGE_COLUMN, conditionColumns, defineKind, integerColumn, KRUISE_GROUP, textColumn } from "./kind.ts";
import { labelsSchema, MAX_LABELS, nonEmptySelector } from "./label-selector.ts";
import { matchLimitSelectorSchema } from "./match-limit-selector.ts";
import { dnsLabelSchema, dnsSubdomainSchema, subsetNameSchema } from "./names.ts";
import { appMetadataSchema, frozenSchema, guardSchema, onLossSchema, pausedSchema, webhookSchema } from "./operator-fields.ts";
import { type ValidationResult, validate } from "./problems.ts";
import { resourceMatchSchema } from "./resource-match.ts";
import { type Finding, fieldsOf, isObject, withRules } from "./rule.ts";
import { RECREATE_ADVICE, SPEC_CEL_RULES, specRules } from "./virtual-app-rules.ts";

// These bounds are far above common use. The API server estimates the cost of the CEL rules from the product
// of the first three, and Kubernetes 1.36 refuses twice that product.
const MAX_SUBSETS = 64;
const MAX_ROUTE_RULES = 32;
const MAX_SUB_RULES = 128;
const MAX_MATCHES = 32;

const subRuleSchema = z.strictObject({
  name: dnsLabelSchema.describe("Name of the rule, for routeRules."),
  match: nonEmptyList(matchLimitSelectorSchema, MAX_MATCHES).describe(
    "Terms of the rule. The rule contains each namespace that at least one term matches.",
  ),
});

const subsetSchema = z.strictObject({
  name: subsetNameSchema.describe("Name of the subset, and suffix of the name of its lock. `default` is reserved."),
  labels: withRules(labelsSchema.meta({ minProperties: 1, maxProperties: MAX_LABELS }), labelsRequired).describe(
    "Labels of the subset's pods. A pod belongs to the first subset for which the pod has all labels. A pod that matches no subset belongs to the default subset.",
  ),
  routeRules: nonEmptyList(z.string().min(1).max(63), MAX_ROUTE_RULES).describe(
    "Names of subRules. A subRule can belong to one subset only. The subset owns the namespaces of its subRules.",
  ),
});

const controllerSchema = z
  .strictObject({
    leaderElectionName: optional(dnsSubdomainSchema).describe(
      "Name of the operator's leader-election lock. Each subset has its own lock NAME---SUBSET. The name cannot be changed after it is set.",
    ),
    leaderElection: optional(
      z.strictObject({ lockName: optional(dnsSubdomainSchema).describe("Name of the operator's leader-election lock.") }),
    ).describe("Old name of leaderElectionName."),
  })
  .meta(
    celRules({
      rule: "!has(self.leaderElectionName) || !has(self.leaderElection) || !has(self.leaderElection.lockName) || self.leaderElectionName == self.leaderElection.lockName",
      message: "leaderElectionName and leaderElection.lockName name the same lock: set one of them, or both to the same name",
    }),
  );

const configurationSchema = z.strictObject({
  controller: optional(controllerSchema).describe("The operator's controllers."),
  webhook: webhookSchema,
  restConfigOverrides: optional(
    z.strictObject({
      userAgentOrPrefix: textUpTo(256)
        .regex(/^[ -~]*$/, { error: "must be printable ASCII, since it is sent in a header" })
        .optional()
        .describe(
          "Replacement for the User-Agent of the operator's requests. A value that ends with \"/\" is a prefix instead. The API server's audit log has the resulting User-Agent.",
        ),
    }),
  ).describe("Changes that the proxy makes to the operator's requests."),
});

const routeSchema = z.strictObject({
  globalLimits: optional(z.array(matchLimitSelectorSchema).max(MAX_MATCHES)).describe(
    "Limits for all pods of the app. An object that is outside of one of the limits belongs to no subset.",
  ),
  subRules: namedList(subRuleSchema, MAX_SUB_RULES).describe("Named rules. Subsets refer to them in routeRules."),
  onLoss: onLossSchema("subset").meta({ default: "Restart" }),
  paused: pausedSchema.meta({ default: false }),
  maxMovingPercent: optional(int(1, 100)).describe(
    "An edit that would move more than this share of all namespaces waits, in percent. Namespaces inside other clusters count too. Until it is confirmed, every namespace keeps its present owner, as with paused. The condition Converged says how to confirm it. The default is no limit. The first division of a running operator is no move.",
  ),
  guard: guardSchema("subset").meta({ default: "Enforce" }),
  frozen: frozenSchema,
  subsetPublicResources: optional(z.array(resourceMatchSchema).max(32)).describe(
    "Shared resources. Every subset can read and write all objects of these resources.",
  ),
  subsetDefaultOnlyUserAgents: optional(z.array(z.string().min(1).max(256)).max(64)).describe(
    "User agents that only the default subset serves. In every other subset, lists by these user agents are empty, their watches get no events, and their other requests for objects are forbidden, except for the leader-election lock. An entry must match the whole User-Agent that the operator sends. `*` matches any characters, as in `foo-operator/*` or `*/gc-controller`.",
  ),
});

const virtualAppSpecSchema = withRules(
  z
    .strictObject({
      selector: nonEmptySelector({ rule: "self == oldSelf", message: `cannot be changed: ${RECREATE_ADVICE}` }).describe(
        "Selects the operator's pods, in the namespace of this object. The selector must not be empty, and cannot be changed.",
      ),
      configuration: optional(configurationSchema).describe("Properties of the operator."),
      route: optional(routeSchema).describe("Rules that assign namespaces and objects to subsets."),
      subsets: namedList(subsetSchema, MAX_SUBSETS).describe(
        "Groups of the operator's pods, in order: a pod belongs to the first subset that matches. Pods that match no subset form the default subset.",
      ),
    })
    .meta(celRules(...SPEC_CEL_RULES)),
  specRules,
);

const READY = conditionColumns("Ready");

export const virtualAppKind = defineKind({
  group: KRUISE_GROUP,
  kind: "VirtualApp",
  plural: "virtualapps",
  shortName: "vapp",
  description: "VirtualApp divides the pods of one operator into subsets, and assigns namespaces and objects to these subsets.",
  columns: [
    READY.status,
    READY.reason,
    integerColumn("Proxies", ".status.proxies.total", "Pods of the app with a proxy."),
    integerColumn("Synced", ".status.proxies.synced", "Proxies that enforce the newest route."),
    integerColumn("Namespaces", ".status.namespaces.total", "Namespaces within the limits of the app."),
    integerColumn("Moving", ".status.namespaces.moving", "Namespaces that change their owner."),
    textColumn("Waiting-For", ".status.handover.waitingOn[0].pod", "Pod for which the handover has waited longest."),
    textColumn("Why", ".status.handover.waitingOn[0].reason", "Reason of the longest wait."),
    AGE_COLUMN,
    { ...integerColumn("Frozen", ".status.namespaces.frozen", "Namespaces in which no pod of the app may write."), priority: 1 },
    { ...integerColumn("Route", ".status.routeVersion", "Version of the route."), priority: 1 },
    READY.message,
  ],
  metadata: appMetadataSchema,
  spec: virtualAppSpecSchema.describe("The operator, its subsets, and the namespaces and objects that each subset owns."),
  status: appStatusSchema,
});

export type VirtualApp = Immutable<z.output<typeof virtualAppKind.schema>>;
export type VirtualAppSpec = Immutable<z.output<typeof virtualAppSpecSchema>>;
export type Subset = Immutable<z.output<typeof subsetSchema>>;

export function validateVirtualApp(object: unknown): ValidationResult<VirtualApp> {
  return validate(virtualAppKind.schema, object);
}

/** The name of the operator's lock, from either field; "" if there is none. */
export function lockNameOf(spec: VirtualAppSpec): string {
  const controller = spec.configuration?.controller;
  return controller?.leaderElectionName ?? controller?.leaderElection?.lockName ?? "";
}

function* labelsRequired(labels: unknown): Iterable<Finding> {
  if (isObject(labels) && Object.keys(fieldsOf(labels)).length === 0)
    yield { path: [], message: "must not be empty: without labels every pod would be in the subset" };
}
