// The MutatingAdmissionPolicy that sets the labels of one resource's objects whenever they are created or
// changed. Invariants: it depends on the resource alone, so it never changes while it is in force; it has
// each field with a default, because a policy counts as in force only if its spec is equal.
import { CONTROL, NAMESPACE, SHARD_HASH } from "../../api/sharding-keys.ts";
import { type Resource, resourceName } from "../../kube/client/resource.ts";
import {
  MUTATING_ADMISSION_POLICIES,
  MUTATING_ADMISSION_POLICY_BINDINGS,
  type MutatingAdmissionPolicy,
  type MutatingAdmissionPolicyBinding,
} from "../../kube/client/resources.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import { isStatus } from "../../kube/status.ts";
import type { GroupResource, KubeObject } from "../../kube/types.ts";
import { ensure } from "../../runtime/ensure.ts";
import { isDeepEqual } from "../../runtime/merge-patch.ts";
import { isNamespaces } from "./right-labels.ts";

const PREFIX = "ctrlmesh-labels-";
const MANAGED_BY = { "app.kubernetes.io/managed-by": "ctrlmesh-manager" };

export const policyName = (of: GroupResource) => `${PREFIX}${resourceName(of)}`;

/** The resource of a policy's name; undefined for a policy of somebody else. */
export function resourceOfPolicy(name: string): GroupResource | undefined {
  if (!name.startsWith(PREFIX)) return undefined;
  const [resource = "", ...group] = name.slice(PREFIX.length).split(".");
  return { resource, group: group.join(".") };
}

export function labelPolicy(of: GroupResource): MutatingAdmissionPolicy {
  return {
    metadata: { name: policyName(of), labels: MANAGED_BY },
    spec: {
      failurePolicy: "Fail",
      // Called again after a webhook that has changed the object.
      reinvocationPolicy: "IfNeeded",
      matchConstraints: {
        matchPolicy: "Equivalent",
        namespaceSelector: {},
        objectSelector: {},
        resourceRules: [
          {
            apiGroups: [of.group],
            apiVersions: ["*"],
            operations: ["CREATE", "UPDATE"],
            // A subresource such as pods/status or pods/binding can change the labels of its object.
            resources: [of.resource, `${of.resource}/*`],
            scope: isNamespaces(of) ? "Cluster" : "Namespaced",
          },
        ],
      },
      variables: isNamespaces(of) ? NAMESPACE_VARIABLES : OBJECT_VARIABLES,
      mutations: [{ patchType: "JSONPatch", jsonPatch: { expression: isNamespaces(of) ? PATCH_NAMESPACE : PATCH_OBJECT } }],
    },
  };
}

function labelPolicyBinding(of: GroupResource): MutatingAdmissionPolicyBinding {
  return { metadata: { name: policyName(of), labels: MANAGED_BY }, spec: { policyName: policyName(of) } };
}

// CEL has no bytes to count with. Names of namespaces have only lower-case letters, digits and "-". In this
// text the place of each of these characters is its byte modulo 32.
const LETTERS = " abcdefghijklmnopqrstuvwxyz".padEnd(0x2d, " ").concat("-  0123456789");

const controlOf = (object: string) => `${object}.metadata.?labels[?'${CONTROL}'].orValue('true')`;

const OBJECT_VARIABLES = [
  { name: "home", expression: "request.namespace" },
  // Without the object of the namespace nothing is known, and its objects are labelled.
  { name: "control", expression: `namespaceObject == null ? 'true' : ${controlOf("namespaceObject")}` },
];

const NAMESPACE_VARIABLES = [
  // The API server completes metadata.generateName later: such a namespace is labelled by the patcher.
  { name: "home", expression: "object.metadata.?name.orValue('')" },
  { name: "control", expression: controlOf("object") },
];

const HASH = `string(string(variables.home).split('').map(c, '${LETTERS}'.indexOf(c)).sum() % 32)`;
const set = (key: string, value: string) =>
  `JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('${key}'), value: ${value}}`;
const patch = (more: string) =>
  `variables.home == '' || variables.control != 'true' ? [] : (has(object.metadata.labels) ? [] : [JSONPatch{op: 'add', path: '/metadata/labels', value: {}}]) + [${set(NAMESPACE, "variables.home")}, ${set(SHARD_HASH, HASH)}${more}]`;

const PATCH_OBJECT = patch("");
const PATCH_NAMESPACE = patch(`, ${set(CONTROL, "'true'")}`);

type Client = Pick<KubeClient, "create" | "patch" | "delete">;

export interface StoredPolicy {
  readonly policy: MutatingAdmissionPolicy | undefined;
  readonly binding: MutatingAdmissionPolicyBinding | undefined;
}

export function isInForce(of: GroupResource, { policy, binding }: StoredPolicy): boolean {
  return isRight(policy, labelPolicy(of)) && isRight(binding, labelPolicyBinding(of));
}

type Policy = KubeObject & { readonly spec: object };

function isRight(stored: Policy | undefined, desired: Policy): boolean {
  return stored?.metadata.deletionTimestamp === undefined && isDeepEqual(stored?.spec, desired.spec);
}

/** By server-side apply, so that the right to create can be restricted to names. */
export async function keepPolicy(client: Client, of: GroupResource, stored: StoredPolicy, signal: AbortSignal): Promise<void> {
  const how = { signal, createBy: "apply" } as const;
  await ensure(client, MUTATING_ADMISSION_POLICIES, stored.policy, labelPolicy(of), how);
  await ensure(client, MUTATING_ADMISSION_POLICY_BINDINGS, stored.binding, labelPolicyBinding(of), how);
}

/** Deletes the binding first, which ends the effect. */
export async function removePolicy(client: Client, of: GroupResource, signal: AbortSignal): Promise<void> {
  for (const resource of [MUTATING_ADMISSION_POLICY_BINDINGS, MUTATING_ADMISSION_POLICIES]) {
    try {
      await client.delete(resource as Resource, { name: policyName(of) }, { signal });
    } catch (error) {
      if (!isStatus(error, "NotFound")) throw error;
    }
  }
}
