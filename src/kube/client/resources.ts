// The built-in kinds, with the fields that the project reads or writes.
import type { KubeObject, LabelSelector } from "../types.ts";
import type { Resource } from "./resource.ts";

/** The label of a StatefulSet's pods with the name of their ControllerRevision. */
export const REVISION_LABEL = "controller-revision-hash";

export interface Condition {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  readonly reason?: string;
  readonly message?: string;
  readonly lastTransitionTime?: string;
}

export interface Container {
  readonly name: string;
  readonly image?: string;
  readonly env?: readonly { readonly name: string }[];
  readonly securityContext?: { readonly capabilities?: { readonly add?: readonly string[] } };
}

/** At most one is set. Their fields are not read. */
export interface ContainerState {
  readonly running?: object;
  readonly terminated?: object;
}

export interface ContainerStatus {
  readonly name: string;
  readonly ready: boolean;
  readonly started?: boolean;
  readonly restartCount: number;
  readonly state?: ContainerState;
  readonly lastState?: ContainerState;
}

export interface Pod extends KubeObject {
  readonly spec?: {
    readonly nodeName?: string;
    readonly containers?: readonly Container[];
    readonly initContainers?: readonly Container[];
  };
  readonly status?: {
    readonly phase?: string;
    readonly podIP?: string;
    readonly conditions?: readonly Condition[];
    readonly containerStatuses?: readonly ContainerStatus[];
    readonly initContainerStatuses?: readonly ContainerStatus[];
  };
}

export interface StatefulSet extends KubeObject {
  readonly spec?: {
    /** Default 1. */
    readonly replicas?: number;
    readonly ordinals?: { readonly start?: number };
    readonly updateStrategy?: { readonly type?: string };
  };
  readonly status?: {
    readonly observedGeneration?: number;
    /** Name of the ControllerRevision of the present template. */
    readonly updateRevision?: string;
  };
}

export interface ReplicaSet extends KubeObject {
  readonly spec?: { readonly template?: { readonly metadata?: { readonly labels?: Readonly<Record<string, string>> } } };
  readonly status?: { readonly conditions?: readonly Condition[] };
}

export interface ControllerRevision extends KubeObject {
  /** Of a StatefulSet: a strategic merge patch that replaces its template. */
  readonly data?: { readonly spec?: { readonly template?: Readonly<Record<string, unknown>> } };
}

export interface LeaseSpec {
  readonly holderIdentity?: string;
  readonly leaseDurationSeconds?: number;
  /** metav1.MicroTime, with six digits of fraction. */
  readonly acquireTime?: string;
  readonly renewTime?: string;
  readonly leaseTransitions?: number;
}

export interface Lease extends KubeObject {
  readonly spec?: LeaseSpec;
}

export interface ConfigMap extends KubeObject {
  readonly data?: Readonly<Record<string, string>>;
}

export interface Secret extends KubeObject {
  readonly type?: string;
  /** Base64. */
  readonly data?: Readonly<Record<string, string>>;
}

export interface Service extends KubeObject {
  readonly spec?: {
    /** "None" for a headless service. */
    readonly clusterIP?: string;
    /** One address of each family, if there are two. */
    readonly clusterIPs?: readonly string[];
    readonly selector?: Readonly<Record<string, string>>;
    readonly ports?: readonly {
      readonly name?: string;
      /** Default TCP. */
      readonly protocol?: string;
      readonly port: number;
      /** Default `port`. */
      readonly targetPort?: number | string;
    }[];
  };
}

export interface ObjectReference {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
}

/** An Event of the core group. */
export interface Event extends KubeObject {
  readonly involvedObject: ObjectReference;
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  readonly count?: number;
  readonly firstTimestamp?: string;
  readonly lastTimestamp?: string;
  readonly source?: { readonly component?: string; readonly host?: string };
  readonly reportingComponent?: string;
  readonly reportingInstance?: string;
}

export interface CustomResourceDefinition extends KubeObject {
  readonly status?: { readonly conditions?: readonly Condition[] };
}

export interface WebhookClientConfig {
  /** PEM in base64. */
  readonly caBundle?: string;
  readonly service?: { readonly namespace: string; readonly name: string; readonly path?: string; readonly port?: number };
  readonly url?: string;
}

interface RuleWithOperations {
  readonly apiGroups: readonly string[];
  readonly apiVersions: readonly string[];
  readonly resources: readonly string[];
  readonly operations: readonly string[];
  readonly scope?: "Cluster" | "Namespaced" | "*";
}

export interface ValidatingWebhook {
  readonly name: string;
  readonly admissionReviewVersions: readonly string[];
  readonly clientConfig: WebhookClientConfig;
  readonly rules?: readonly RuleWithOperations[];
  readonly namespaceSelector?: LabelSelector;
  readonly objectSelector?: LabelSelector;
  readonly failurePolicy?: "Fail" | "Ignore";
  readonly matchPolicy?: "Exact" | "Equivalent";
  readonly matchConditions?: readonly { readonly name: string; readonly expression: string }[];
  readonly sideEffects: "None" | "NoneOnDryRun";
  readonly timeoutSeconds?: number;
}

export interface MutatingWebhook extends ValidatingWebhook {
  readonly reinvocationPolicy?: "Never" | "IfNeeded";
}

export interface ValidatingWebhookConfiguration extends KubeObject {
  readonly webhooks?: readonly ValidatingWebhook[];
}

export interface MutatingWebhookConfiguration extends KubeObject {
  readonly webhooks?: readonly MutatingWebhook[];
}

export interface MutatingAdmissionPolicy extends KubeObject {
  readonly spec: {
    readonly failurePolicy: "Fail" | "Ignore";
    readonly reinvocationPolicy: "Never" | "IfNeeded";
    readonly matchConstraints: {
      readonly matchPolicy: "Exact" | "Equivalent";
      readonly namespaceSelector: LabelSelector;
      readonly objectSelector: LabelSelector;
      readonly resourceRules: readonly RuleWithOperations[];
    };
    readonly variables: readonly { readonly name: string; readonly expression: string }[];
    readonly mutations: readonly { readonly patchType: "JSONPatch"; readonly jsonPatch: { readonly expression: string } }[];
  };
}

export interface MutatingAdmissionPolicyBinding extends KubeObject {
  readonly spec: { readonly policyName: string };
}

export const NAMESPACES = clusterScoped("", "namespaces", "Namespace");
export const PODS = namespaced<Pod>("", "pods", "Pod");
export const STATEFUL_SETS = namespaced<StatefulSet>("apps", "statefulsets", "StatefulSet");
export const REPLICA_SETS = namespaced<ReplicaSet>("apps", "replicasets", "ReplicaSet");
export const CONTROLLER_REVISIONS = namespaced<ControllerRevision>("apps", "controllerrevisions", "ControllerRevision");
export const CONFIG_MAPS = namespaced<ConfigMap>("", "configmaps", "ConfigMap");
export const SECRETS = namespaced<Secret>("", "secrets", "Secret");
export const SERVICES = namespaced<Service>("", "services", "Service");
export const EVENTS = namespaced<Event>("", "events", "Event");
export const LEASES = namespaced<Lease>("coordination.k8s.io", "leases", "Lease");
export const CUSTOM_RESOURCE_DEFINITIONS = clusterScoped<CustomResourceDefinition>(
  "apiextensions.k8s.io",
  "customresourcedefinitions",
  "CustomResourceDefinition",
);
export const MUTATING_WEBHOOK_CONFIGURATIONS = clusterScoped<MutatingWebhookConfiguration>(
  "admissionregistration.k8s.io",
  "mutatingwebhookconfigurations",
  "MutatingWebhookConfiguration",
);
export const VALIDATING_WEBHOOK_CONFIGURATIONS = clusterScoped<ValidatingWebhookConfiguration>(
  "admissionregistration.k8s.io",
  "validatingwebhookconfigurations",
  "ValidatingWebhookConfiguration",
);
export const MUTATING_ADMISSION_POLICIES = clusterScoped<MutatingAdmissionPolicy>(
  "admissionregistration.k8s.io",
  "mutatingadmissionpolicies",
  "MutatingAdmissionPolicy",
);
export const MUTATING_ADMISSION_POLICY_BINDINGS = clusterScoped<MutatingAdmissionPolicyBinding>(
  "admissionregistration.k8s.io",
  "mutatingadmissionpolicybindings",
  "MutatingAdmissionPolicyBinding",
);

function namespaced<T extends KubeObject>(group: string, resource: string, kind: string): Resource<T> {
  return { group, version: "v1", resource, kind, namespaced: true };
}

function clusterScoped<T extends KubeObject>(group: string, resource: string, kind: string): Resource<T> {
  return { group, version: "v1", resource, kind, namespaced: false };
}
