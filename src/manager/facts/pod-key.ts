// The key of a pod. The registry of proxies and all facts about pods go by it.

/** "namespace/name" of a pod. */
export type PodKey = `${string}/${string}`;

export function podKey({ namespace, name }: { readonly namespace: string; readonly name: string }): PodKey {
  return `${namespace}/${name}`;
}
