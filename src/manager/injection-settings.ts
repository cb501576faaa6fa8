// The settings of every injection, from the manager's settings and the facts about the cluster. Pure.

import type { ManagerConfig } from "./config.ts";
import type { KnownCluster } from "./facts/cluster-facts.ts";
import type { InjectionSettings } from "./injection/injection.ts";

/** The port `grpc` of the manager's Service. */
const SERVICE_PORT = 5447;

export type SettingsForPods = Pick<
  ManagerConfig,
  "namespace" | "serviceName" | "clusterDomain" | "proxyImage" | "proxyPullPolicy" | "proxyPullSecrets" | "proxyDefaults"
>;

export function injectionSettings(config: SettingsForPods, { gitVersion, kubernetesService }: KnownCluster): InjectionSettings {
  return {
    proxyImage: config.proxyImage,
    imagePullPolicy: config.proxyPullPolicy,
    imagePullSecrets: config.proxyPullSecrets,
    defaults: config.proxyDefaults,
    managerAddress: `${config.serviceName}.${config.namespace}.svc:${SERVICE_PORT}`,
    clusterDomain: config.clusterDomain,
    nativeSidecars: hasNativeSidecars(gitVersion),
    kubernetesService,
  };
}

/**
 * Native sidecars are on by default since Kubernetes 1.29. An older server drops the field, and the pod would
 * wait for its proxy without end. `gitVersion` is the version of GET /version, such as "v1.36.3" or
 * "v1.29.1-gke.100"; a version that cannot be read counts as new.
 */
export function hasNativeSidecars(gitVersion: string): boolean {
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(gitVersion) ?? [];
  if (major === undefined || minor === undefined) return true;
  return Number(major) > 1 || Number(minor) >= 29;
}
