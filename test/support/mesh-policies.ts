// Writes policies to a running mesh, as a user does, and waits until the proxies enforce them.
import { expect } from "vitest";
import type { PolicyStatus } from "../../src/api/policy-status.ts";
import { CIRCUIT_BREAKERS, FAULT_INJECTIONS, TRAFFIC_POLICIES } from "../../src/api/resources.ts";
import type { Resource } from "../../src/kube/client/resource.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import { eventually } from "./eventually.ts";

type PolicyKindName = "CircuitBreaker" | "FaultInjection" | "TrafficPolicy";
type WithStatus = KubeObject & { readonly status?: PolicyStatus | undefined };

const RESOURCES: Readonly<Record<PolicyKindName, Resource<WithStatus>>> = {
  CircuitBreaker: CIRCUIT_BREAKERS,
  FaultInjection: FAULT_INJECTIONS,
  TrafficPolicy: TRAFFIC_POLICIES,
};
type Metadata = Pick<KubeObject["metadata"], "annotations" | "finalizers">;

export type MeshPolicies = ReturnType<typeof createMeshPolicies>;

export function createMeshPolicies(client: KubeClient, namespace: string) {
  const get = (kind: PolicyKindName, name: string) => client.get(RESOURCES[kind], { namespace, name });
  const write = (kind: PolicyKindName, name: string, spec: object, metadata: Metadata = {}) => {
    const { group, version } = RESOURCES[kind];
    const body = { apiVersion: `${group}/${version}`, kind, metadata: { ...metadata, name, namespace }, spec };
    return client.patch(RESOURCES[kind], { namespace, name }, { type: "apply", body });
  };
  return {
    get,
    /** Creates or replaces the object, and leaves it to the mesh. */
    write,
    /** Creates or replaces the object, and waits until all its proxies enforce it. */
    async apply(kind: PolicyKindName, name: string, spec: object, metadata: Metadata = {}): Promise<void> {
      const { metadata: written } = await write(kind, name, spec, metadata);
      await eventually(async () => {
        const { conditions = [] } = (await get(kind, name)).status ?? {};
        const [accepted, synced] = ["Accepted", "Synced"].map((type) => conditions.find((each) => each.type === type));
        expect(synced).toMatchObject({ status: "True", observedGeneration: written.generation });
        // A fault waits until its start is stored.
        if (kind === "FaultInjection") expect(accepted?.reason).toBe("Valid");
      });
    },
    /** Merges fields into the object. null removes one. */
    merge: (kind: PolicyKindName, name: string, body: object) =>
      client.patch(RESOURCES[kind], { namespace, name }, { type: "merge", body }),
    delete: (kind: PolicyKindName, name: string) => client.delete(RESOURCES[kind], { namespace, name }),
  };
}
