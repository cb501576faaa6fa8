// The image of a container of a pod, wherever the container stands.
import type { Pod } from "../../kube/client/resources.ts";

/** Undefined: the pod has no such container. */
export function imageOf({ spec }: Pod, container: string): string | undefined {
  const containers = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])];
  return containers.find(({ name }) => name === container)?.image;
}
