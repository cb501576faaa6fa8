// Schemas that the policy kinds share. Invariants: `*` stands alone in a list and no list is empty, so that a
// list shows what it matches; all rules of an object together are small enough for an index.
import { optional, z } from "zod";
import type { Immutable } from "../base/json.ts";
import { celRules, someField, withChecks } from "./extensions.ts";
import { nonEmptyList, textUpTo } from "./fields.ts";
import { dnsLabelSchema } from "./names.ts";
import { apiGroupSchema, WILDCARD } from "./resource-match.ts";
import { type Finding, fieldAt, itemsOf, stringsOf, withRules } from "./rule.ts";

export const MAX_RESOURCE_RULES = 16;
export const MAX_TRAFFIC_RULES = 64;

export const modeSchema = optional(z.enum(["Enforce", "Shadow", "Disabled"]))
  .meta({ default: "Enforce" })
  .describe(
    "Enforce (the default): the rules decide about requests. Shadow: the rules are counted in the metrics of the proxies, and change no answer. From Shadow to Enforce they keep their tokens and open breakers. Disabled: the rules have no effect.",
  );

/** Neither a space nor a control character. */
const VISIBLE = String.raw`[^\x00-\x20\x7f]`;

/** Any text, since the originals allow it. It is a label's value in metrics, and stands in messages of one line. */
export const ruleNameSchema = textUpTo(128).regex(new RegExp(`^${VISIBLE}+( +${VISIBLE}+)*$`), {
  error: "must be a text of one line, without a space at either end",
});

const ALONE = `"${WILDCARD}" must be the only item of its list`;

export function matchList<T extends z.ZodType<string>>(item: T, max: number, min = 1) {
  const list = z
    .array(item, { error: ({ input }) => (input === undefined ? `required; use "${WILDCARD}" for all` : undefined) })
    .min(min, { error: `must not be empty; use "${WILDCARD}" for all` })
    .max(max)
    .meta(celRules({ rule: `self.size() <= 1 || !("${WILDCARD}" in self)`, message: ALONE }));
  return withRules(list, wildcardAlone);
}

const userSchema = textUpTo(253).regex(/^[^\s*]+$/, {
  error: 'must be a user name such as "system:serviceaccount:shop:operator"; there are no wildcards',
});

const NAME = "[a-z0-9]+(-+[a-z0-9]+)*";

const resourceSchema = textUpTo(127).regex(new RegExp(`^(\\*|${NAME}|${NAME}/(\\*|${NAME})|\\*/${NAME})$`), {
  error: 'must be a plural resource name such as "pods", a subresource such as "pods/status" or "*/scale", or "*" for all',
});

const namespaceSchema = textUpTo(63).regex(new RegExp(`^(\\*|${NAME})$`), {
  error: 'must be the name of a namespace, or "*" for all',
});

const VERBS = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", WILDCARD] as const;

const exceptSchema = optional(
  z
    .array(
      withChecks(
        z.strictObject({
          namespaces: optional(nonEmptyList(dnsLabelSchema, 64)).describe("Namespaces of the objects."),
          names: optional(nonEmptyList(textUpTo(253).min(1), 64)).describe(
            "Names of the objects. A request that names no object, such as a create or a deletecollection, is no exception by name.",
          ),
          users: optional(nonEmptyList(userSchema, 16)).describe(
            'Users, as the API server knows them: for example "system:serviceaccount:shop:operator". With impersonation, the impersonated user counts.',
          ),
        }),
        someField("excepts nothing: set namespaces, names or users", "namespaces", "names", "users"),
      ),
    )
    .max(16),
).describe(
  "Requests that are not meant: those that match one of the entries. Of an entry, all lists that are set must have a match.",
);

const NO_PROXY_VERB = 'matches no request: to limit a proxy request, list "pods/proxy" in resources, and its verbs here';

const verbSchema = z.enum(VERBS, { error: ({ input }) => (input === "proxy" ? NO_PROXY_VERB : undefined) });

const apiGroups = matchList(apiGroupSchema, 32);
const resources = matchList(resourceSchema, 64);
const verbs = matchList(verbSchema, 8);
const namespaces = matchList(namespaceSchema, 256);

const requests = {
  apiGroups: apiGroups.describe('API groups. "" is the core group, "*" matches all groups.'),
  resources: resources.describe(
    'Plural resource names such as "pods", and subresources such as "pods/status", "pods/*" (every subresource of pods) or "*/scale". What follows a subresource in a path does not matter. "pods" does not include the subresources of pods. "*" matches all resources and subresources. To delete pods is also to evict them.',
  ),
  verbs: verbs.describe(
    'Verbs of the requests. "*" matches all. A deletecollection is also a delete, and takes all tokens of a bucket.',
  ),
  except: exceptSchema,
};

/** The form of KusionStack's kinds. */
export const resourceRuleSchema = z.strictObject({
  ...requests,
  namespaces: namespaces.describe(
    'Namespaces of the objects. "*" matches all namespaces, cluster-scoped objects, and requests over all namespaces.',
  ),
});

/** The form of KusionStack's FaultInjection: a list that is absent matches all. */
export const resourceMatchSchema = z.strictObject({
  apiGroups: optional(apiGroups).describe('API groups. "" is the core group. The default is "*": all groups.'),
  resources: optional(resources).describe(
    'Plural resource names such as "pods", and subresources such as "pods/status", "pods/*" (every subresource of pods) or "*/scale". "pods" does not include the subresources of pods. The default is "*": all resources and subresources.',
  ),
  verbs: optional(verbs).describe(
    'Verbs of the requests. A deletecollection is also a delete, and so is the eviction of a pod. The default is "*": all verbs.',
  ),
  namespaces: optional(namespaces).describe(
    'Namespaces of the objects. The default is "*": all namespaces, cluster-scoped objects, and requests over all namespaces.',
  ),
  except: exceptSchema,
});

/** The form of API Priority and Fairness (flowcontrol/v1 ResourcePolicyRule). */
export const resourcePolicyRuleSchema = z.strictObject({
  ...requests,
  namespaces: optional(matchList(namespaceSchema, 256, 0)).describe(
    'Namespaces of the objects. "*" matches all namespaces. The list may be absent or empty if clusterScope is true.',
  ),
  clusterScope: optional(z.boolean()).describe(
    "If true, the rule also matches cluster-scoped objects (Namespaces are such), and requests over all namespaces. The default is false.",
  ),
});

export type ResourcePolicyRuleSpec = Immutable<z.output<typeof resourcePolicyRuleSchema>>;

export const perSchema = optional(z.enum(["Pod", "Object", "Policy"]))
  .meta({ default: "Pod" })
  .describe(
    "What has a bucket of its own. Pod (the default): each pod. Object: in each pod, each object that requests name, with all its verbs and subresources; requests that name no object count for their collection. Policy: all pods of this policy divide one bucket, and the manager deals them shares.",
  );

/** Pairs of a resource and a namespace in all rules of an object. Proxies index rules by pairs. */
const MAX_PAIRS = 16_384;

export function* boundedResourceRules(rules: readonly unknown[], path: readonly string[]): Iterable<Finding> {
  const pairs = rules.reduce<number>((sum, rule) => {
    return sum + sizeOf(fieldAt(rule, "resources")) * sizeOf(fieldAt(rule, "namespaces"));
  }, 0);
  if (pairs <= MAX_PAIRS) return;
  const message = `all rules together list ${pairs} pairs of a resource and a namespace; at most ${MAX_PAIRS} are allowed, so use "${WILDCARD}" for all`;
  yield { path, message, isLast: true };
}

/** A proxy has room for the shares of sixteen objects. */
const MAX_DIVIDED_BUCKETS = 16;

export function* boundedDividedBuckets(buckets: readonly unknown[], path: readonly string[]): Iterable<Finding> {
  const count = buckets.filter((bucket) => fieldAt(bucket, "per") === "Policy").length;
  if (count <= MAX_DIVIDED_BUCKETS) return;
  yield { path, message: `${count} buckets have per: Policy; at most ${MAX_DIVIDED_BUCKETS} are allowed` };
}

/** An absent list is one pattern that matches all. */
function sizeOf(list: unknown): number {
  return list === undefined ? 1 : stringsOf(list).length;
}

function* wildcardAlone(list: unknown): Iterable<Finding> {
  const items = itemsOf(list);
  const index = items.indexOf(WILDCARD);
  if (index >= 0 && items.length > 1) yield { path: [index], value: WILDCARD, message: ALONE };
}
