// Fields of every kind that describes an operator. The parameter `subset` is the kind's own word: "subset" or
// "shard".
import { optional, z } from "zod";
import { appAnnotations } from "./annotations.ts";
import { int, textUpTo } from "./fields.ts";
import { objectMetaSchema } from "./kind.ts";
import { dnsLabelSchema, dnsSubdomainSchema } from "./names.ts";
import { type Finding, fieldsOf, isObject, withRules } from "./rule.ts";

/** The name is also a label's value on pods, so it has at most 63 characters. */
export const appMetadataSchema = withRules(objectMetaSchema.extend({ name: textUpTo(63).exactOptional() }), appAnnotations);

const webhookServerSchema = z.strictObject({
  certDir: textUpTo(1024)
    .regex(/^\//, { error: "must be an absolute path" })
    .describe(
      "Directory with tls.crt and tls.key of the operator's webhook server, in its container. A volume has to be mounted there or above. The proxy serves the same certificate.",
    ),
  port: int(1, 65_535).describe(
    "Port of the operator's webhook server. Its container must give the port a name, and the Service must use the name as its targetPort. In iptables mode neither is needed.",
  ),
});

export type WebhookServer = z.output<typeof webhookServerSchema>;

export const webhookSchema = optional(webhookServerSchema).describe(
  "The operator's own admission webhook server. If it is set, the subset that owns an object answers the reviews of this object. It takes effect in pods that are created afterwards. The condition WebhookIntercepted reports whether the reviews go through the proxies.",
);

export function onLossSchema(subset: string) {
  return optional(z.enum(["Restart", "InPlace"])).describe(
    `Treatment of the pods of a ${subset} that loses namespaces. Restart (the default): the manager evicts the pods one at a time, the leader last. Until its eviction a pod may read these namespaces, but not write to them. InPlace: the pods keep running, and their operator sees the objects as deleted.`,
  );
}

export function guardSchema(subset: string) {
  return optional(z.enum(["Enforce", "Warn"])).describe(
    `Treatment of writes to objects that the pod's ${subset} does not own. Enforce (the default): they are refused. Warn: they pass, and so does a get of such an object, except while the namespace moves. The client gets a warning that names the owner. Then several ${subset}s may write to one object. A deletecollection outside of the own namespaces is refused all the same.`,
  );
}

/** Of one app. A proxy names all whenever it registers, and that is bounded (src/manager/server/judge-proxy.ts). */
export const MAX_FROZEN = 64;
const MAX_REASON = 256;

export const frozenSchema = optional(
  withRules(
    z.record(z.string(), z.string().min(1).max(MAX_REASON)).meta({ maxProperties: MAX_FROZEN }),
    frozenCountRule,
    frozenNamesRule,
  ),
).describe(
  "Frozen namespaces: the name of each, or CLUSTER/NAMESPACE for one inside a MeshCluster with interception: Terminate, and why. No pod of the operator can write in a frozen namespace, whoever owns it, while the owner continues to read it. The leader-election lock, and Events about the operator's own pods, are not affected. The condition Converged is True once all pods enforce it and none of their writes there is under way.",
);

function* frozenCountRule(frozen: unknown): Iterable<Finding> {
  const count = isObject(frozen) ? Object.keys(fieldsOf(frozen)).length : 0;
  if (count > MAX_FROZEN) yield { path: [], message: `must have at most ${MAX_FROZEN} namespaces, and has ${count}` };
}

function* frozenNamesRule(frozen: unknown): Iterable<Finding> {
  if (!isObject(frozen)) return;
  for (const name of Object.keys(fieldsOf(frozen)).slice(0, MAX_FROZEN)) {
    const [namespace = "", ...cluster] = name.split("/").reverse();
    const isPlace = dnsLabelSchema.safeParse(namespace).success && cluster.length < 2;
    if (!isPlace || cluster.some((each) => !dnsSubdomainSchema.safeParse(each).success))
      yield { path: [name], message: "must be the name of a namespace, or CLUSTER/NAMESPACE for one inside another cluster" };
  }
}

export const pausedSchema = optional(z.boolean()).describe(
  "If true, every namespace keeps its present owner as long as the spec has it, no pod is restarted, and the rules apply to new namespaces only. A handover that has begun is completed.",
);
