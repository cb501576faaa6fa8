// The Pod as the test node reads it. Field names and meanings are those of core/v1.
import type { Resource } from "../../src/kube/client/resource.ts";
import type { Condition } from "../../src/kube/client/resources.ts";
import type { KubeObject, ObjectMeta } from "../../src/kube/types.ts";

export interface KeySelector {
  readonly name: string;
  readonly key: string;
  readonly optional?: boolean;
}

export interface FieldRef {
  readonly fieldPath: string;
}

export interface ResourceFieldRef {
  readonly containerName?: string;
  readonly resource: string;
  readonly divisor?: string;
}

export interface EnvVar {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: {
    readonly fieldRef?: FieldRef;
    readonly resourceFieldRef?: ResourceFieldRef;
    readonly configMapKeyRef?: KeySelector;
    readonly secretKeyRef?: KeySelector;
  };
}

interface OptionalRef {
  readonly name: string;
  readonly optional?: boolean;
}

export interface EnvFrom {
  readonly prefix?: string;
  readonly configMapRef?: OptionalRef;
  readonly secretRef?: OptionalRef;
}

export interface HttpGet {
  readonly path?: string;
  readonly port: number | string;
  readonly host?: string;
  readonly scheme?: "HTTP" | "HTTPS";
  readonly httpHeaders?: readonly { readonly name: string; readonly value: string }[];
}

/** The common part of a probe and a lifecycle hook. */
export interface Action {
  readonly exec?: { readonly command: readonly string[] };
  readonly httpGet?: HttpGet;
  readonly tcpSocket?: { readonly host?: string; readonly port: number | string };
  readonly grpc?: { readonly port: number; readonly service?: string };
  readonly sleep?: { readonly seconds: number };
}

export interface Probe extends Action {
  readonly initialDelaySeconds?: number;
  readonly periodSeconds?: number;
  readonly timeoutSeconds?: number;
  readonly successThreshold?: number;
  readonly failureThreshold?: number;
  readonly terminationGracePeriodSeconds?: number;
}

export interface SecurityContext {
  readonly runAsUser?: number;
  readonly runAsGroup?: number;
  readonly runAsNonRoot?: boolean;
  readonly readOnlyRootFilesystem?: boolean;
  readonly allowPrivilegeEscalation?: boolean;
  readonly privileged?: boolean;
  readonly capabilities?: { readonly add?: readonly string[]; readonly drop?: readonly string[] };
}

export interface PodSecurityContext extends Pick<SecurityContext, "runAsUser" | "runAsGroup" | "runAsNonRoot"> {
  readonly fsGroup?: number;
  readonly supplementalGroups?: readonly number[];
}

export interface VolumeMount {
  readonly name: string;
  readonly mountPath: string;
  readonly readOnly?: boolean;
  readonly subPath?: string;
}

export interface Container {
  readonly name: string;
  readonly image: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly workingDir?: string;
  readonly env?: readonly EnvVar[];
  readonly envFrom?: readonly EnvFrom[];
  readonly ports?: readonly { readonly name?: string; readonly containerPort: number }[];
  readonly resources?: {
    readonly limits?: Readonly<Record<string, string>>;
    readonly requests?: Readonly<Record<string, string>>;
  };
  readonly volumeMounts?: readonly VolumeMount[];
  readonly livenessProbe?: Probe;
  readonly readinessProbe?: Probe;
  readonly startupProbe?: Probe;
  readonly lifecycle?: { readonly postStart?: Action; readonly preStop?: Action };
  readonly securityContext?: SecurityContext;
  /** Only of init containers: "Always" makes it a native sidecar. */
  readonly restartPolicy?: string;
}

export interface KeyToPath {
  readonly key: string;
  readonly path: string;
  readonly mode?: number;
}

export interface ConfigMapSource {
  readonly name?: string;
  readonly items?: readonly KeyToPath[];
  readonly optional?: boolean;
}

export interface DownwardItem {
  readonly path: string;
  readonly fieldRef?: FieldRef;
  readonly resourceFieldRef?: ResourceFieldRef;
  readonly mode?: number;
}

export interface ProjectedSource {
  readonly configMap?: ConfigMapSource;
  readonly secret?: ConfigMapSource;
  readonly downwardAPI?: { readonly items?: readonly DownwardItem[] };
  readonly serviceAccountToken?: { readonly audience?: string; readonly expirationSeconds?: number; readonly path: string };
}

export interface Volume {
  readonly name: string;
  readonly emptyDir?: { readonly medium?: string; readonly sizeLimit?: string };
  readonly configMap?: ConfigMapSource & { readonly defaultMode?: number };
  readonly secret?: Omit<ConfigMapSource, "name"> & { readonly secretName?: string; readonly defaultMode?: number };
  readonly downwardAPI?: { readonly items?: readonly DownwardItem[]; readonly defaultMode?: number };
  readonly projected?: { readonly sources?: readonly ProjectedSource[]; readonly defaultMode?: number };
}

export interface ContainerState {
  readonly waiting?: { readonly reason: string; readonly message?: string };
  readonly running?: { readonly startedAt: string };
  readonly terminated?: {
    readonly exitCode: number;
    readonly reason: string;
    readonly message?: string;
    readonly startedAt?: string;
    readonly finishedAt?: string;
  };
}

export interface ContainerStatus {
  readonly name: string;
  readonly image: string;
  readonly imageID: string;
  readonly ready: boolean;
  readonly started: boolean;
  readonly restartCount: number;
  readonly state: ContainerState;
  readonly lastState: ContainerState;
  readonly containerID?: string;
}

export interface PodSpec {
  readonly nodeName?: string;
  readonly hostname?: string;
  readonly subdomain?: string;
  readonly serviceAccountName?: string;
  readonly hostNetwork?: boolean;
  readonly hostPID?: boolean;
  readonly hostAliases?: readonly { readonly ip: string; readonly hostnames?: readonly string[] }[];
  readonly restartPolicy?: string;
  readonly terminationGracePeriodSeconds?: number;
  readonly securityContext?: PodSecurityContext;
  readonly readinessGates?: readonly { readonly conditionType: string }[];
  readonly volumes?: readonly Volume[];
  readonly initContainers?: readonly Container[];
  readonly containers: readonly Container[];
}

export interface PodStatus {
  readonly phase?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly hostIP?: string;
  readonly hostIPs?: readonly { readonly ip: string }[];
  readonly podIP?: string;
  readonly podIPs?: readonly { readonly ip: string }[];
  readonly startTime?: string;
  readonly conditions?: readonly Condition[];
  readonly initContainerStatuses?: readonly ContainerStatus[];
  readonly containerStatuses?: readonly ContainerStatus[];
}

export interface NodePod extends KubeObject {
  readonly metadata: ObjectMeta & { readonly deletionGracePeriodSeconds?: number };
  readonly spec: PodSpec;
  readonly status?: PodStatus;
}

/** Complete pods. */
export const NODE_PODS: Resource<NodePod> = { group: "", version: "v1", resource: "pods", kind: "Pod", namespaced: true };

/** A ConfigMap or a Secret. */
export interface Keyed extends KubeObject {
  readonly data?: Readonly<Record<string, string>>;
  readonly binaryData?: Readonly<Record<string, string>>;
}

export const CONFIG_MAPS: Resource<Keyed> = {
  group: "",
  version: "v1",
  resource: "configmaps",
  kind: "ConfigMap",
  namespaced: true,
};
export const SECRETS: Resource<Keyed> = { group: "", version: "v1", resource: "secrets", kind: "Secret", namespaced: true };

/** A native sidecar: an init container that keeps running. */
export function isSidecar(container: Container): boolean {
  return container.restartPolicy === "Always";
}

/** "namespace/name". */
export function podName(pod: NodePod): string {
  return `${pod.metadata.namespace}/${pod.metadata.name}`;
}
