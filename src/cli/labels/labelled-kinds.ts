// What the manager has labelled for a family, and what it would label again. Pure, but for the rules of the manager.
import { CONTROL, NAMESPACE, SHARD_HASH } from "../../api/sharding-keys.ts";
import { resourceName } from "../../kube/client/resource.ts";
import type { GroupResource, KubeObject } from "../../kube/types.ts";
import { labelledResources, uniqueResources } from "../../manager/sharding/sharding-source.ts";

/** The resources that the configs name, whether they ask for labels now or not; and namespaces. */
export function labelledKinds(configs: readonly KubeObject[]): readonly GroupResource[] {
  return uniqueResources(configs.flatMap((config) => labelledResources(asking(config))));
}

function asking(config: KubeObject): KubeObject {
  return { ...config, spec: { ...(config as { readonly spec?: object }).spec, labelObjects: true } } as KubeObject;
}

/** The configs that ask for labels now, by the name of each resource: the labels are the same for all families. */
export function askingConfigs(configs: readonly KubeObject[]): ReadonlyMap<string, string> {
  return new Map(
    configs.flatMap((config) => {
      const title = `${config.metadata.namespace}/${config.metadata.name}`;
      return labelledResources(config).map((of) => [resourceName(of), title] as const);
    }),
  );
}

/** The name of the policy and of its binding that set the labels (labels.test.ts compares it with the manager's). */
export function policyOf(of: GroupResource): string {
  return `ctrlmesh-labels-${resourceName(of)}`;
}

export function isNamespaces({ group, resource }: GroupResource): boolean {
  return group === "" && resource === "namespaces";
}

/** Selects what has a label of the mesh. Another value of `control` than "true" is a user's. */
export function selectorsOf(of: GroupResource): readonly string[] {
  return [NAMESPACE, SHARD_HASH, ...(isNamespaces(of) ? [`${CONTROL}=true`] : [])];
}

/** A merge patch that removes the labels of the mesh. */
export function removal({ metadata: { labels = {} } }: KubeObject): object {
  const keys = [NAMESPACE, SHARD_HASH, CONTROL].filter((key) => labels[key] !== undefined);
  const own = keys.filter((key) => key !== CONTROL || labels[key] === "true");
  return { metadata: { labels: Object.fromEntries(own.map((key) => [key, null])) } };
}

/** What does the same for a resource. */
export function kubectlWords(of: GroupResource, more: readonly string[]): readonly (readonly string[])[] {
  const ofAll = ["kubectl", "label", resourceName(of), "--all"];
  const scope = isNamespaces(of) ? [] : ["-A"];
  const control = ["kubectl", "label", "namespaces", "-l", `${CONTROL}=true`, `${CONTROL}-`, ...more];
  return [[...ofAll, ...scope, `${NAMESPACE}-`, `${SHARD_HASH}-`, ...more], ...(isNamespaces(of) ? [control] : [])];
}
