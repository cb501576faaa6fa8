// The table of the kinds that localkube serves: one row for each kind. Custom resources add and remove rows at run time (crd.ts).
// Each difference between kinds is a column, so other modules need not name a kind.
import type { Column } from "./columns.ts";
import type { Schema } from "./schema.ts";

export interface ResourceType {
  /** API group; "" is the core group. */
  readonly group: string;
  readonly version: string;
  /** Plural name. */
  readonly resource: string;
  readonly singular: string;
  readonly kind: string;
  readonly listKind: string;
  readonly namespaced: boolean;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  /** Has a status subresource. Then a write of the object keeps the status, and a write of the status keeps all else. */
  readonly status: boolean;
  /** Other subresources, each with the kind that it takes and returns. */
  readonly subresources: Readonly<Record<string, { readonly kind: string; readonly group: string; readonly version: string }>>;
  /** Counts metadata.generation. */
  readonly generation: boolean;
  /** PUT without a resourceVersion is accepted. */
  readonly unconditionalUpdate: boolean;
  /** PUT creates a missing object. */
  readonly createOnUpdate: boolean;
  /** Can be deleted as a collection. */
  readonly deleteCollection: boolean;
  /** DELETE answers with the object instead of a Status. */
  readonly returnsDeleted: boolean;
  /** Field selectors besides metadata.name and metadata.namespace. */
  readonly selectableFields: readonly string[];
  /** Table columns between Name and Age. */
  readonly columns: readonly Column[];
  /** Nothing is stored: a POST is only answered (reviews). */
  readonly virtual: boolean;
  readonly custom: boolean;
  readonly schema?: Schema;
}

type Row = Partial<Omit<ResourceType, "virtual">> & Pick<ResourceType, "resource" | "kind">;

function row(type: Row): ResourceType {
  return {
    group: "",
    version: "v1",
    singular: type.kind.toLowerCase(),
    listKind: `${type.kind}List`,
    namespaced: true,
    shortNames: [],
    categories: [],
    status: false,
    subresources: {},
    generation: false,
    unconditionalUpdate: true,
    createOnUpdate: false,
    deleteCollection: true,
    returnsDeleted: false,
    selectableFields: [],
    columns: [],
    custom: false,
    virtual: false,
    ...type,
  };
}

function review(group: string, resource: string, kind: string): ResourceType {
  return { ...row({ group, resource, kind, namespaced: false }), virtual: true };
}

const BUILT_IN: readonly ResourceType[] = [
  row({
    resource: "namespaces",
    kind: "Namespace",
    namespaced: false,
    shortNames: ["ns"],
    status: true,
    subresources: { finalize: { kind: "Namespace", group: "", version: "v1" } },
    deleteCollection: false,
    returnsDeleted: true,
    selectableFields: ["status.phase"],
    columns: [{ name: "Status", type: "string", jsonPath: ".status.phase" }],
  }),
  row({
    resource: "pods",
    kind: "Pod",
    shortNames: ["po"],
    categories: ["all"],
    status: true,
    subresources: { eviction: { kind: "Eviction", group: "policy", version: "v1" } },
    generation: true,
    returnsDeleted: true,
    selectableFields: [
      "spec.nodeName",
      "spec.restartPolicy",
      "spec.schedulerName",
      "spec.serviceAccountName",
      "status.phase",
      "status.podIP",
    ],
    columns: [
      { name: "Status", type: "string", jsonPath: ".status.phase" },
      { name: "IP", type: "string", jsonPath: ".status.podIP", priority: 1 },
      { name: "Node", type: "string", jsonPath: ".spec.nodeName", priority: 1 },
    ],
  }),
  row({ resource: "configmaps", kind: "ConfigMap", shortNames: ["cm"] }),
  row({
    resource: "secrets",
    kind: "Secret",
    selectableFields: ["type"],
    columns: [{ name: "Type", type: "string", jsonPath: ".type" }],
  }),
  row({
    resource: "services",
    kind: "Service",
    shortNames: ["svc"],
    categories: ["all"],
    status: true,
    createOnUpdate: true,
    returnsDeleted: true,
    selectableFields: ["spec.clusterIP", "spec.type"],
    columns: [
      { name: "Type", type: "string", jsonPath: ".spec.type" },
      { name: "Cluster-IP", type: "string", jsonPath: ".spec.clusterIP" },
    ],
  }),
  row({
    resource: "endpoints",
    kind: "Endpoints",
    singular: "endpoints",
    listKind: "EndpointsList",
    shortNames: ["ep"],
    createOnUpdate: true,
  }),
  row({
    resource: "events",
    kind: "Event",
    shortNames: ["ev"],
    createOnUpdate: true,
    selectableFields: [
      "involvedObject.kind",
      "involvedObject.namespace",
      "involvedObject.name",
      "involvedObject.uid",
      "involvedObject.apiVersion",
      "involvedObject.resourceVersion",
      "involvedObject.fieldPath",
      "reason",
      "reportingComponent",
      "source",
      "type",
    ],
    columns: [
      { name: "Type", type: "string", jsonPath: ".type" },
      { name: "Reason", type: "string", jsonPath: ".reason" },
      { name: "Message", type: "string", jsonPath: ".message" },
    ],
  }),
  row({
    resource: "nodes",
    kind: "Node",
    namespaced: false,
    shortNames: ["no"],
    status: true,
    selectableFields: ["spec.unschedulable"],
  }),
  row({
    resource: "serviceaccounts",
    kind: "ServiceAccount",
    shortNames: ["sa"],
    returnsDeleted: true,
    subresources: { token: { kind: "TokenRequest", group: "authentication.k8s.io", version: "v1" } },
  }),
  row({
    group: "apps",
    resource: "replicasets",
    kind: "ReplicaSet",
    shortNames: ["rs"],
    categories: ["all"],
    status: true,
    generation: true,
    columns: [{ name: "Desired", type: "integer", jsonPath: ".spec.replicas" }],
  }),
  row({
    group: "apps",
    resource: "statefulsets",
    kind: "StatefulSet",
    shortNames: ["sts"],
    categories: ["all"],
    status: true,
    generation: true,
    columns: [{ name: "Replicas", type: "integer", jsonPath: ".spec.replicas" }],
  }),
  row({
    group: "coordination.k8s.io",
    resource: "leases",
    kind: "Lease",
    unconditionalUpdate: false,
    createOnUpdate: true,
    columns: [{ name: "Holder", type: "string", jsonPath: ".spec.holderIdentity" }],
  }),
  row({
    group: "apiextensions.k8s.io",
    resource: "customresourcedefinitions",
    kind: "CustomResourceDefinition",
    namespaced: false,
    shortNames: ["crd", "crds"],
    categories: ["api-extensions"],
    status: true,
    generation: true,
    unconditionalUpdate: false,
    columns: [{ name: "Created At", type: "date", jsonPath: ".metadata.creationTimestamp" }],
  }),
  review("authentication.k8s.io", "tokenreviews", "TokenReview"),
  review("authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview"),
  review("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
  review("authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview"),
];

/** "group/resource": the storage key of a resource, the same for all its versions. */
export function storageKey(type: Pick<ResourceType, "group" | "resource">): string {
  return `${type.group}/${type.resource}`;
}

/** "v1" or "group/v1". */
export function apiVersionOf(type: Pick<ResourceType, "group" | "version">): string {
  return type.group === "" ? type.version : `${type.group}/${type.version}`;
}

/** "resource" or "resource.group", as error messages name it. */
export function qualifiedResource(type: Pick<ResourceType, "group" | "resource">): string {
  return type.group === "" ? type.resource : `${type.resource}.${type.group}`;
}

export class Registry {
  #types: readonly ResourceType[] = BUILT_IN;

  all(): readonly ResourceType[] {
    return this.#types;
  }

  find(group: string, version: string, resource: string): ResourceType | undefined {
    return this.#types.find((type) => type.resource === resource && type.group === group && type.version === version);
  }

  /** Any version of the resource with this storage key. */
  byStorageKey(key: string): ResourceType | undefined {
    return this.#types.find((type) => !type.virtual && storageKey(type) === key);
  }

  /** Replaces all versions of a custom resource; an empty list removes the resource. */
  replace(group: string, resource: string, types: readonly ResourceType[]): void {
    this.#types = [...this.#types.filter((type) => type.group !== group || type.resource !== resource), ...types];
  }
}

/** A row for one version of a custom resource. */
export function customType(type: Row): ResourceType {
  return row({ unconditionalUpdate: false, generation: true, ...type, custom: true });
}
