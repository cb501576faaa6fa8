// Keeps the policy of a resource and its binding as label-policy.ts computes them, and removes them.
// Level-based. Invariant: both are made by server-side apply, so that the right to create them can be
// restricted to their names.
import type { Resource } from "../../kube/client/resource.ts";
import { MUTATING_ADMISSION_POLICIES, MUTATING_ADMISSION_POLICY_BINDINGS } from "../../kube/client/resources.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import { isStatus } from "../../kube/status.ts";
import type { GroupResource, KubeObject } from "../../kube/types.ts";
import { isDeepEqual } from "../../runtime/deep-equal.ts";
import { ensure } from "../../runtime/ensure.ts";
import { labelPolicy, labelPolicyBinding, policyName } from "./label-policy.ts";

interface SpecObject extends KubeObject {
  readonly spec: object;
}

type Client = Pick<KubeClient, "create" | "patch" | "delete">;

/** The policy and the binding as the API server has them. */
export interface StoredPolicy {
  readonly policy: SpecObject | undefined;
  readonly binding: SpecObject | undefined;
}

/** True if new objects get their labels: the stored policy is exactly the right one. */
export function isInForce(of: GroupResource, { policy, binding }: StoredPolicy): boolean {
  return isRight(policy, labelPolicy(of)) && isRight(binding, labelPolicyBinding(of));
}

function isRight(stored: SpecObject | undefined, desired: SpecObject): boolean {
  return stored?.metadata.deletionTimestamp === undefined && isDeepEqual(stored?.spec, desired.spec);
}

export async function keepPolicy(client: Client, of: GroupResource, stored: StoredPolicy, signal: AbortSignal): Promise<void> {
  const how = { signal, createBy: "apply" } as const;
  await ensure(client, MUTATING_ADMISSION_POLICIES, stored.policy, labelPolicy(of), how);
  await ensure(client, MUTATING_ADMISSION_POLICY_BINDINGS, stored.binding, labelPolicyBinding(of), how);
}

/** The binding goes first, and with it the effect. */
export async function removePolicy(client: Client, of: GroupResource, signal: AbortSignal): Promise<void> {
  for (const resource of [MUTATING_ADMISSION_POLICY_BINDINGS, MUTATING_ADMISSION_POLICIES]) {
    try {
      await client.delete(resource as Resource, { name: policyName(of) }, { signal });
    } catch (error) {
      if (!isStatus(error, "NotFound")) throw error;
    }
  }
}
