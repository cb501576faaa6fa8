// Fills a cluster with ConfigMaps of about 1.1 KB, as the measurements in docs and tests use them.
import { CONFIG_MAPS } from "../../src/kube/client/resources.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";

export interface ManyOptions {
  readonly count: number;
  /** ConfigMap i is in namespaces[i mod length]. */
  readonly namespaces: readonly string[];
  /** Creations at a time; the default is 64. */
  readonly parallel?: number;
  /** Further labels of the objects of a namespace. */
  readonly labels?: (namespace: string) => Readonly<Record<string, string>>;
}

/** The data of each ConfigMap. */
export const CONFIG_MAP_DATA: Readonly<Record<string, string>> = {
  payload: "x".repeat(700),
  quoted: 'a "quoted" {"metadata":{"namespace":"decoy"}} text\n',
};

/** The name of the ConfigMap with this index. */
export function nameOf(index: number): string {
  return `cm-${String(index).padStart(6, "0")}`;
}

export async function createManyConfigMaps(client: KubeClient, options: ManyOptions): Promise<void> {
  const { count, namespaces, parallel = 64, labels = () => ({}) } = options;
  let next = 0;
  const worker = async () => {
    for (let index = next++; index < count; index = next++) {
      const namespace = namespaces[index % namespaces.length] ?? "default";
      const name = nameOf(index);
      await client.create(CONFIG_MAPS, {
        metadata: { namespace, name, labels: { mark: `mark-of-${namespace}`, ...labels(namespace) } },
        data: CONFIG_MAP_DATA,
      });
    }
  };
  await Promise.all(Array.from({ length: parallel }, worker));
}
