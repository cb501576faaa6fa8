// The types of the injection: its request and its result. `injectPod` in inject-pod.ts is a pure function
// from the request to the result. The webhook server turns the result into the answer to the AdmissionReview:
//
//   const injection = injectPod({ pod: request.object, namespace: request.namespace, apps, settings });
//   changed   => allowed, patch (JSONPatch) of `injection.patch`, warnings
//   unchanged => allowed, no patch, warnings
//   refused   => not allowed, status {code: 403, reason: "Forbidden", message: injection.message}, warnings
import type { App } from "../apps/app.ts";
import type { PatchOperation, PodManifest } from "./pod-manifest.ts";

/** The input of an injection. */
export interface InjectionRequest {
  /** The unchanged object of the admission request (CREATE of pods). */
  readonly pod: unknown;
  /** The namespace of the admission request. The pod itself may not contain it. */
  readonly namespace: string;
  /** The apps of that namespace. Apps that do not select the pod are ignored. */
  readonly apps: readonly Pick<App, "ref" | "object" | "pods" | "spec">[];
  readonly settings: InjectionSettings;
}

/** The manager's settings and the facts about its cluster; the same for every pod. */
export interface InjectionSettings {
  /** Image of the proxy and of the other injected containers. */
  readonly proxyImage: string;
  /** The imagePullPolicy of the proxy; default IfNotPresent. */
  readonly imagePullPolicy?: "Always" | "IfNotPresent" | "Never";
  /** Names of Secrets for the proxy's image; they must be in the pod's namespace. */
  readonly imagePullSecrets?: readonly string[];
  /** Annotations in force for each pod that has none of its own. */
  readonly defaults?: Readonly<Record<string, string>>;
  /** host:port at which proxies reach the manager. The manager's certificate contains this host. */
  readonly managerAddress: string;
  /**
   * True if the cluster supports init containers with restartPolicy Always (1.29 or later). See
   * `hasNativeSidecars`.
   */
  readonly nativeSidecars: boolean;
  /** The Service `kubernetes` in `default`: its one or two cluster IPs, and its port. */
  readonly kubernetesService: { readonly ips: readonly string[]; readonly port: number };
  /** The DNS domain of the cluster; default "cluster.local". */
  readonly clusterDomain?: string;
}

/** The result for the pod. */
export type Injection =
  | {
      readonly kind: "changed";
      /** Name of the app for which the pod was injected. */
      readonly app: string;
      readonly pod: PodManifest;
      /** The difference from the request's pod to this pod (RFC 6902). */
      readonly patch: readonly PatchOperation[];
      /** Sentences for the user. Clients show at least the first 120 characters of each. */
      readonly warnings: readonly string[];
    }
  /** No app selects the pod (`app` is undefined), or the pod is already injected. */
  | { readonly kind: "unchanged"; readonly app: string | undefined; readonly warnings: readonly string[] }
  /**
   * The pod is refused: without a sidecar it would read and write everything. `message` starts with
   * "ctrlmesh:".
   */
  | {
      readonly kind: "refused";
      /** The reasons, for a metric and for logs. */
      readonly reasons: readonly RefusalReason[];
      readonly message: string;
      readonly warnings: readonly string[];
    };

/** One reason why a pod is refused. */
export interface Refusal {
  readonly reason: RefusalReason;
  readonly message: string;
}

/** Why a pod was refused, as a label value of a metric. */
export type RefusalReason =
  | "Unreadable"
  | "SeveralApps"
  | "BadAnnotation"
  | "InjectionUnwanted"
  | "HostNetwork"
  | "Windows"
  | "NoServiceAccountToken"
  | "UnboundToken"
  | "PortTaken"
  | "NameTaken"
  | "ProxyUser"
  | "NoServiceAddress";
