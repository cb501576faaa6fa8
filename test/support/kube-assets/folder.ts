// KUBEBUILDER_ASSETS, the ecosystem's convention for a folder with the control plane's own programs: where it is set, the
// tests run on these instead of on our binary of the same parts.
import { existsSync } from "node:fs";
import { join } from "node:path";

export type AssetName = "etcd" | "kube-apiserver" | "kube-controller-manager" | "kube-scheduler";

/**
 * The folder, if the variable is set and it holds etcd, kube-apiserver and whatever else is wanted. The usual downloads
 * have no kube-controller-manager: tests that need it take our binary even so.
 */
export function kubeAssetsFolder(more: readonly AssetName[] = [], folder = process.env.KUBEBUILDER_ASSETS): string | undefined {
  if (!folder) return undefined;
  return ["etcd", "kube-apiserver", ...more].every((name) => existsSync(join(folder, name))) ? folder : undefined;
}

/** Whether a control plane can be had from there. */
export function hasKubeAssets(): boolean {
  return kubeAssetsFolder() !== undefined;
}
