// The built-in kinds that the project reads or writes, with the fields it reads. src/api describes the
// project's own kinds.
import type { KubeObject, LabelSelector } from "../types.ts";
import type { Resource } from "./resource.ts";

export interface Condition {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  readonly reason?: string;
  readonly message?: string;
  readonly lastTransitionTime?: string;
  readonly observedGeneration?: number;
}

export interface Namespace extends KubeObject {
  readonly status?: { readonly phase?: string };
}

export interface EnvVar {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: unknown;
}

export interface VolumeMount {
  readonly name: string;
  readonly mountPath: string;
  readonly readOnly?: boolean;
  readonly subPath?: string;
}

export interface Container {
  readonly name: string;
  readonly image?: string;
  readonly args?: readonly string[];
  readonly command?: readonly string[];
  readonly env?: readonly EnvVar[];
  readonly volumeMounts?: readonly VolumeMount[];
  readonly restartPolicy?: string;
  readonly securityContext?: { readonly capabilities?: { readonly add?: readonly string[] } };
}

export interface ContainerState {
  /** Set if the container runs. Its fields are not read. */
  readonly running?: object;
  /** Set if the container has ended. Its fields are not read. */
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
    readonly serviceAccountName?: string;
    readonly hostNetwork?: boolean;
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

/** core/v1 Event. */
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
  readonly spec: {
    readonly group: string;
    readonly scope: "Namespaced" | "Cluster";
    readonly names: {
      readonly plural: string;
      readonly kind: string;
      readonly singular?: string;
      readonly shortNames?: readonly string[];
    };
    readonly versions: readonly { readonly name: string; readonly served: boolean; readonly storage: boolean }[];
  };
  readonly status?: { readonly conditions?: readonly Condition[] };
}

export interface WebhookClientConfig {
  /** PEM in base64. */
  readonly caBundle?: string;
  readonly service?: { readonly namespace: string; readonly name: string; readonly path?: string; readonly port?: number };
  readonly url?: string;
}

/** admissionregistration.k8s.io/v1 ValidatingWebhook. */
export interface ValidatingWebhook {
  readonly name: string;
  readonly admissionReviewVersions: readonly string[];
  readonly clientConfig: WebhookClientConfig;
  readonly rules?: readonly {
    readonly apiGroups: readonly string[];
    readonly apiVersions: readonly string[];
    readonly resources: readonly string[];
    readonly operations: readonly string[];
    readonly scope?: "Cluster" | "Namespaced" | "*";
  }[];
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
  /** Absent for none. */
  readonly webhooks?: readonly ValidatingWebhook[];
}

export interface MutatingWebhookConfiguration extends KubeObject {
  /** Absent for none. */
  readonly webhooks?: readonly MutatingWebhook[];
}

/** admissionregistration.k8s.io/v1 MutatingAdmissionPolicy, with the fields that the project writes. */
export interface MutatingAdmissionPolicy extends KubeObject {
  readonly spec: {
    readonly failurePolicy: "Fail" | "Ignore";
    readonly reinvocationPolicy: "Never" | "IfNeeded";
    readonly matchConstraints: {
      readonly matchPolicy: "Exact" | "Equivalent";
      readonly namespaceSelector: LabelSelector;
      readonly objectSelector: LabelSelector;
      readonly resourceRules: readonly {
        readonly apiGroups: readonly string[];
        readonly apiVersions: readonly string[];
        readonly operations: readonly ("CREATE" | "UPDATE")[];
        readonly resources: readonly string[];
        readonly scope: "Cluster" | "Namespaced" | "*";
      }[];
    };
    readonly variables: readonly { readonly name: string; readonly expression: string }[];
    readonly mutations: readonly { readonly patchType: "JSONPatch"; readonly jsonPatch: { readonly expression: string } }[];
  };
}

export interface MutatingAdmissionPolicyBinding extends KubeObject {
  readonly spec: { readonly policyName: string };
}

export const NAMESPACES: Resource<Namespace> = {
  group: "",
  version: "v1",
  resource: "namespaces",
  kind: "Namespace",
  namespaced: false,
};
export const PODS: Resource<Pod> = { group: "", version: "v1", resource: "pods", kind: "Pod", namespaced: true };
export const STATEFUL_SETS: Resource<StatefulSet> = {
  group: "apps",
  version: "v1",
  resource: "statefulsets",
  kind: "StatefulSet",
  namespaced: true,
};
export const CONTROLLER_REVISIONS: Resource<ControllerRevision> = {
  group: "apps",
  version: "v1",
  resource: "controllerrevisions",
  kind: "ControllerRevision",
  namespaced: true,
};
export const CONFIG_MAPS: Resource<ConfigMap> = {
  group: "",
  version: "v1",
  resource: "configmaps",
  kind: "ConfigMap",
  namespaced: true,
};
export const SECRETS: Resource<Secret> = { group: "", version: "v1", resource: "secrets", kind: "Secret", namespaced: true };
export const SERVICES: Resource<Service> = {
  group: "",
  version: "v1",
  resource: "services",
  kind: "Service",
  namespaced: true,
};
export const EVENTS: Resource<Event> = { group: "", version: "v1", resource: "events", kind: "Event", namespaced: true };
export const LEASES: Resource<Lease> = {
  group: "coordination.k8s.io",
  version: "v1",
  resource: "leases",
  kind: "Lease",
  namespaced: true,
};
export const CUSTOM_RESOURCE_DEFINITIONS: Resource<CustomResourceDefinition> = {
  group: "apiextensions.k8s.io",
  version: "v1",
  resource: "customresourcedefinitions",
  kind: "CustomResourceDefinition",
  namespaced: false,
};
export const MUTATING_WEBHOOK_CONFIGURATIONS: Resource<MutatingWebhookConfiguration> = {
  group: "admissionregistration.k8s.io",
  version: "v1",
  resource: "mutatingwebhookconfigurations",
  kind: "MutatingWebhookConfiguration",
  namespaced: false,
};
export const VALIDATING_WEBHOOK_CONFIGURATIONS: Resource<ValidatingWebhookConfiguration> = {
  group: "admissionregistration.k8s.io",
  version: "v1",
  resource: "validatingwebhookconfigurations",
  kind: "ValidatingWebhookConfiguration",
  namespaced: false,
};
export const MUTATING_ADMISSION_POLICIES: Resource<MutatingAdmissionPolicy> = {
  group: "admissionregistration.k8s.io",
  version: "v1",
  resource: "mutatingadmissionpolicies",
  kind: "MutatingAdmissionPolicy",
  namespaced: false,
};
export const MUTATING_ADMISSION_POLICY_BINDINGS: Resource<MutatingAdmissionPolicyBinding> = {
  group: "admissionregistration.k8s.io",
  version: "v1",
  resource: "mutatingadmissionpolicybindings",
  kind: "MutatingAdmissionPolicyBinding",
  namespaced: false,
};
