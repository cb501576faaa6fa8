// The request, the settings and the result of an injection.
import type { JsonPatchOperation } from "../../kube/client/types.ts";
import type { App } from "../apps/app.ts";
import type { KnownCluster } from "../facts/cluster-facts.ts";
import type { PodManifest } from "./pod-manifest.ts";

export interface InjectionRequest {
  readonly pod: unknown;
  /** The namespace of the admission request; the pod may not contain it. */
  readonly namespace: string;
  readonly apps: readonly Pick<App, "ref" | "object" | "pods" | "spec">[];
  readonly settings: InjectionSettings;
}

export interface InjectionSettings {
  readonly proxyImage: string;
  readonly imagePullPolicy?: "Always" | "IfNotPresent" | "Never";
  /** Names of Secrets for the proxy's image; they must be in the pod's namespace. */
  readonly imagePullSecrets?: readonly string[];
  /** Annotations in force for each pod that has none of its own. */
  readonly defaults?: Readonly<Record<string, string>>;
  /** host:port at which proxies reach the manager. The manager's certificate contains this host. */
  readonly managerAddress: string;
  /** The cluster IPs of the manager's Service. None: it has none, or they are not known. */
  readonly managerIPs?: readonly string[];
  /** The cluster supports init containers with restartPolicy Always. */
  readonly nativeSidecars: boolean;
  /** The Service `kubernetes` in `default`: its one or two cluster IPs, and its port. */
  readonly kubernetesService: { readonly ips: readonly string[]; readonly port: number };
  readonly clusterDomain?: string;
}

export type Injection =
  | {
      readonly kind: "changed";
      readonly app: string;
      readonly pod: PodManifest;
      /** The difference from the request's pod to this pod (RFC 6902). */
      readonly patch: readonly JsonPatchOperation[];
      /** Sentences for the user. Clients show at least the first 120 characters of each. */
      readonly warnings: readonly string[];
    }
  /** No app selects the pod (`app` is undefined), or the pod is already injected. */
  | { readonly kind: "unchanged"; readonly app: string | undefined; readonly warnings: readonly string[] }
  /** Without a sidecar the pod would read and write everything. `message` starts with "ctrlmesh:". */
  | { readonly kind: "refused"; readonly message: string; readonly warnings: readonly string[] };

const SERVICE_PORT = 5447;

interface SettingsForPods extends Readonly<Record<"namespace" | "serviceName" | "clusterDomain" | "proxyImage", string>> {
  readonly proxyPullPolicy: "Always" | "IfNotPresent" | "Never";
  readonly proxyPullSecrets: readonly string[];
  readonly proxyDefaults: Readonly<Record<string, string>>;
}

export function injectionSettings(
  config: SettingsForPods,
  { gitVersion, kubernetesService, managerIPs }: KnownCluster,
): InjectionSettings {
  return {
    proxyImage: config.proxyImage,
    imagePullPolicy: config.proxyPullPolicy,
    imagePullSecrets: config.proxyPullSecrets,
    defaults: config.proxyDefaults,
    managerAddress: `${config.serviceName}.${config.namespace}.svc:${SERVICE_PORT}`,
    managerIPs,
    clusterDomain: config.clusterDomain,
    nativeSidecars: hasNativeSidecars(gitVersion),
    kubernetesService,
  };
}

/**
 * Native sidecars are on by default since Kubernetes 1.29. An older server drops the field, and the pod would
 * wait for its proxy forever.
 * @param gitVersion such as "v1.29.1-gke.100"; a version that cannot be read counts as new
 */
export function hasNativeSidecars(gitVersion: string): boolean {
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(gitVersion) ?? [];
  if (major === undefined || minor === undefined) return true;
  return Number(major) > 1 || Number(minor) >= 29;
}
