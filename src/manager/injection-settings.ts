// What the manager's settings and the cluster make of every injection. Pure.

import type { ManagerConfig } from "./config.ts";
import type { KnownCluster } from "./facts/cluster-facts.ts";
import type { InjectionSettings } from "./injection/injection.ts";
import { hasNativeSidecars } from "./injection/native-sidecars.ts";

/** The port `grpc` of the manager's Service. */
const SERVICE_PORT = 5447;

export type SettingsForPods = Pick<
  ManagerConfig,
  "namespace" | "serviceName" | "clusterDomain" | "proxyImage" | "proxyPullPolicy" | "proxyPullSecrets"
>;

export function injectionSettings(config: SettingsForPods, { gitVersion, kubernetesService }: KnownCluster): InjectionSettings {
  return {
    proxyImage: config.proxyImage,
    imagePullPolicy: config.proxyPullPolicy,
    imagePullSecrets: config.proxyPullSecrets,
    managerAddress: `${config.serviceName}.${config.namespace}.svc:${SERVICE_PORT}`,
    clusterDomain: config.clusterDomain,
    nativeSidecars: hasNativeSidecars(gitVersion),
    kubernetesService,
  };
}
