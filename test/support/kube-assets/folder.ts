// KUBEBUILDER_ASSETS: the common variable for a folder with the control plane's programs. If it is set, the tests run on these
// programs instead of this project's binary.
import { existsSync } from "node:fs";
import { join } from "node:path";

export type AssetName = "etcd" | "kube-apiserver" | "kube-controller-manager" | "kube-scheduler";

/**
 * The folder, if the variable is set and the folder has etcd, kube-apiserver and the other requested programs. The usual
 * downloads have no kube-controller-manager; tests that need it use this project's binary.
 */
export function kubeAssetsFolder(more: readonly AssetName[] = [], folder = process.env.KUBEBUILDER_ASSETS): string | undefined {
  if (!folder) return undefined;
  return ["etcd", "kube-apiserver", ...more].every((name) => existsSync(join(folder, name))) ? folder : undefined;
}

/** True if a control plane can be started from there. */
export function hasKubeAssets(): boolean {
  return kubeAssetsFolder() !== undefined;
}
