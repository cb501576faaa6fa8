// What a bug report has of an object. Pure. Invariant: only fields that this file names leave the cluster, so that no new
// field of Kubernetes can carry a secret out.
import type { Pod } from "../../kube/client/resources.ts";
import type { KubeObject } from "../../kube/types.ts";

/** An object of the mesh: its users write no secrets into it. Others' annotations may hold copies of anything. */
export function ownObject(object: KubeObject): object {
  const { spec, status } = object as { readonly spec?: unknown; readonly status?: unknown };
  const own = Object.fromEntries(Object.entries(object.metadata.annotations ?? {}).filter(([key]) => /^ctrlmesh\./.test(key)));
  return { metadata: { ...identity(object), annotations: own }, spec, status };
}

/** No environment, commands, volumes or messages of containers. */
export function podFacts({ metadata, spec, status }: Pod): object {
  const { nodeName, initContainers = [], containers = [] } = spec ?? {};
  const { phase, conditions = [], initContainerStatuses = [], containerStatuses = [] } = status ?? {};
  return {
    metadata: identity({ metadata }),
    nodeName,
    phase,
    conditions: conditions.map(({ type, status: value, reason }) => ({ type, status: value, reason })),
    images: [...initContainers, ...containers].map(({ name, image }) => ({ name, image })),
    containers: [...initContainerStatuses, ...containerStatuses].map(({ name, restartCount, started, state, lastState }) => ({
      name,
      restartCount,
      started,
      state: Object.keys(state ?? {}),
      lastState: Object.keys(lastState ?? {}),
    })),
  };
}

/** An error may repeat what a credential plugin or a server has said. */
export function withoutCredentials(text: string): string {
  return text.replaceAll(
    /\beyJ[\w-]+(?:\.[\w-]*)*|((?:bearer|basic|token|password|secret|key)["']?[ :=]+["']?)[^\s"',)]+/gi,
    "$1...",
  );
}

export function identity({
  metadata: { namespace, name, uid, generation, creationTimestamp, deletionTimestamp, labels },
}: KubeObject) {
  return { namespace, name, uid, generation, creationTimestamp, deletionTimestamp, labels };
}
