// The contract of the injection: what the webhook brings, and what comes of it. `injectPod` in inject-pod.ts is a pure function from
// the one to the other; the webhook server answers the AdmissionReview with it and does nothing of its own to a pod.
//
//   const injection = injectPod({ pod: request.object, namespace: request.namespace, apps, settings });
//   changed   => allowed, patch (JSONPatch) of `injection.patch`, warnings
//   unchanged => allowed, no patch, warnings
//   refused   => not allowed, status {code: 403, reason: "Forbidden", message: injection.message}, warnings
import type { App } from "../sources/app.ts";
import type { PatchOperation } from "./json-patch.ts";
import type { PodManifest } from "./pod-manifest.ts";

/** What a pod's injection depends on. */
export interface InjectionRequest {
  /** The object of the admission request (CREATE of pods), as it came. */
  readonly pod: unknown;
  /** The namespace of the admission request; the pod itself may not say it. */
  readonly namespace: string;
  /** The apps of that namespace; those that do not select the pod are passed over. */
  readonly apps: readonly Pick<App, "ref" | "object" | "pods">[];
  readonly settings: InjectionSettings;
}

/** What the manager knows about its cluster and itself; the same for every pod. */
export interface InjectionSettings {
  /** Image of the proxy; it holds the programs of the other containers that are injected, too. */
  readonly proxyImage: string;
  /** Default IfNotPresent. */
  readonly imagePullPolicy?: "Always" | "IfNotPresent" | "Never";
  /** Names of Secrets for the proxy's image; they must be in the pod's namespace. */
  readonly imagePullSecrets?: readonly string[];
  /** host:port of the manager, as proxies reach it and as its certificate names it. */
  readonly managerAddress: string;
  /** The API server starts init containers with restartPolicy Always beside the others: 1.29 or later. See `hasNativeSidecars`. */
  readonly nativeSidecars: boolean;
  /** The `kubernetes` Service in `default`: its cluster IPs, one or two of them, and its port. */
  readonly kubernetesService: { readonly ips: readonly string[]; readonly port: number };
  /** Default "cluster.local". */
  readonly clusterDomain?: string;
}

/** What is to be done with the pod. */
export type Injection =
  | {
      readonly kind: "changed";
      /** Name of the app that it was injected for. */
      readonly app: string;
      readonly pod: PodManifest;
      /** From the pod of the request to this one (RFC 6902). */
      readonly patch: readonly PatchOperation[];
      /** For the user, a sentence each (at most 120 characters are sure to be shown). */
      readonly warnings: readonly string[];
    }
  /** No app selects it (`app` is undefined then), or it is injected already. */
  | { readonly kind: "unchanged"; readonly app: string | undefined; readonly warnings: readonly string[] }
  /** It must not run: without a sidecar it would see and write everything. `message` starts with "ctrlmesh:". */
  | {
      readonly kind: "refused";
      /** For a metric and for logs. */
      readonly reasons: readonly RefusalReason[];
      readonly message: string;
      readonly warnings: readonly string[];
    };

/** One reason why a pod is refused. */
export interface Refusal {
  readonly reason: RefusalReason;
  readonly message: string;
}

/** Why a pod was refused, as a label's value. */
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
