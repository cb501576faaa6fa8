// An object of the home cluster by which operators find another cluster. Invariant: what the API server cannot have is refused, because such
// an object would hide nothing, and nobody would notice.
import { optional, z } from "zod";
import { textUpTo } from "./fields.ts";
import { didYouMean } from "./nearest.ts";
import { type Finding, fieldsOf, withRules } from "./rule.ts";

/** With OpenShift's names for them. */
const NAMESPACES: ReadonlySet<string> = new Set(["namespaces", "projects", "projectrequests"]);

/** The resources of the core group that are stored, without namespaces. Kubernetes adds none: new resources get groups of their own. */
const CORE_RESOURCES = [
  "configmaps",
  "endpoints",
  "events",
  "limitranges",
  "nodes",
  "persistentvolumeclaims",
  "persistentvolumes",
  "pods",
  "podtemplates",
  "replicationcontrollers",
  "resourcequotas",
  "secrets",
  "serviceaccounts",
  "services",
];
const RESOURCE = /^[a-z][a-z0-9-]*$/;

const objectSchema = z.strictObject({
  apiGroup: optional(
    textUpTo(253)
      .regex(/^[a-z0-9.-]*$/, { error: 'must be an API group, such as "apps"' })
      .refine((group) => !/^v[0-9][a-z0-9]*$/.test(group), {
        error: "must be an API group without a version; the core group is empty",
      })
      .refine((group) => group !== "core", { error: "must be empty for the core group" }),
  )
    .meta({ default: "" })
    .describe("API group of the object; empty for the core group."),
  resource: textUpTo(253)
    .regex(RESOURCE, { error: 'must be a resource as in RBAC rules, such as "secrets"' })
    .refine((resource) => !NAMESPACES.has(resource), { error: "namespaces are divided by the rules of the app" })
    .describe("Resource of the object, in the plural as in RBAC rules."),
  // Routes have a bound in bytes (MAX_CLAIM_BYTES), so each character is one byte in JSON.
  name: textUpTo(253)
    .min(1, "must not be empty")
    .regex(/^[!#-$&-.0-[\]-~]*$/, { error: "must be in ASCII, without spaces, quotes and the characters / % \\" })
    .refine((name) => !name.includes("*"), { error: "names one object: * is no wildcard" })
    .describe("Name of the object."),
});

export const discoveryObjectSchema = withRules(objectSchema, coreResource);

function* coreResource(object: unknown): Iterable<Finding> {
  const { apiGroup = "", resource } = fieldsOf(object);
  if (apiGroup !== "" || typeof resource !== "string" || !RESOURCE.test(resource)) return;
  if (NAMESPACES.has(resource) || CORE_RESOURCES.includes(resource)) return;
  const advice = didYouMean(resource, CORE_RESOURCES) || ": write its group into apiGroup";
  yield { path: ["resource"], value: resource, message: `is no resource of the core group${advice}` };
}
