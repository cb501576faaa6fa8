// The key of a pod in the registry of proxies and in all facts about pods.

/** "namespace/name" of a pod. */
export type PodKey = `${string}/${string}`;

export function podKey({ namespace, name }: { readonly namespace: string; readonly name: string }): PodKey {
  return `${namespace}/${name}`;
}
