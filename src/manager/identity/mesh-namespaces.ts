// The namespaces whose pods may be of the mesh: those with an app, and those where injected pods outlive the
// last app. The trust controller keeps the ConfigMap there until the last such pod is gone.

import { CA_CONFIG_MAP } from "../../api/injected-pod.ts";
import { CONFIG_MAPS } from "../../kube/client/resources.ts";
import type { KubeObject } from "../../kube/types.ts";
import type { Informers } from "../../runtime/informers.ts";
import type { Apps } from "../apps/app.ts";

/** Selectors for one watch in all namespaces, which brings no other ConfigMaps. */
export const CA_CONFIG_MAPS = { fieldSelector: `metadata.name=${CA_CONFIG_MAP}` };

export const MANAGED_BY = "app.kubernetes.io/managed-by";
export const MANAGER = "ctrlmesh-manager";

export function isOfManager({ metadata }: KubeObject): boolean {
  return metadata.labels?.[MANAGED_BY] === MANAGER;
}

/** The result is undefined until it is known. */
export function createMeshNamespaces(
  apps: Pick<Apps, "hasSynced" | "list">,
  informers: Pick<Informers, "store">,
): (namespace: string) => boolean | undefined {
  const configMaps = informers.store(CONFIG_MAPS, CA_CONFIG_MAPS);
  return (namespace) => {
    if (apps.list(namespace).length > 0) return true;
    const bundle = configMaps.get(CA_CONFIG_MAP, namespace);
    if (bundle !== undefined && isOfManager(bundle)) return true;
    return apps.hasSynced && configMaps.hasSynced ? false : undefined;
  };
}
