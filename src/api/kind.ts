// The definition of a custom resource: names, scope, columns and schema. crd.ts derives its
// CustomResourceDefinition.
import { z } from "zod";
import type { Resource } from "../kube/client/resource.ts";
import type { KubeObject } from "../kube/types.ts";

/** A column of `kubectl get` (apiextensions/v1 CustomResourceColumnDefinition). */
export interface PrinterColumn {
  readonly name: string;
  readonly type: "string" | "integer" | "date";
  readonly description: string;
  readonly jsonPath: string;
  /** 0: always shown. 1: shown only with `-o wide`. */
  readonly priority?: 0 | 1;
}

/** A custom resource of the version v1alpha1. */
export interface KindDefinition {
  readonly group: string;
  readonly kind: string;
  readonly plural: string;
  readonly shortNames: readonly string[];
  readonly scope: "Namespaced" | "Cluster";
  readonly columns: readonly PrinterColumn[];
  /** The whole object, with apiVersion, kind and metadata. */
  readonly schema: z.ZodObject;
}

/** The descriptor of a kind for the client and the controllers. */
export function resourceOf<T extends KubeObject>({ group, plural, kind, scope }: KindDefinition): Resource<T> {
  return { group, version: "v1alpha1", resource: plural, kind, namespaced: scope === "Namespaced" };
}

/** API group of the kinds that OpenKruise Controller Mesh introduced. */
export const KRUISE_GROUP = "ctrlmesh.kruise.io";

/** API group of the kind that KusionStack's Controller Mesh introduced. */
export const KUSIONSTACK_GROUP = "ctrlmesh.kusionstack.io";

/** The advice for a field of an object of this kind that cannot be changed. */
export function recreateAdvice(kind: string): string {
  return `delete this ${kind}, wait until it is deleted, and create it again`;
}

/** The path of a field of the condition of this type, for a column. */
export function conditionPath(type: string, field: "status" | "reason" | "message"): string {
  return `.status.conditions[?(@.type=="${type}")].${field}`;
}

/** The condition Ready of a source kind. */
export const READY_COLUMNS: readonly PrinterColumn[] = [
  {
    name: "Ready",
    type: "string",
    description: "Status of the condition Ready.",
    jsonPath: conditionPath("Ready", "status"),
  },
  {
    name: "Reason",
    type: "string",
    description: "Reason of the condition Ready, as one word.",
    jsonPath: conditionPath("Ready", "reason"),
  },
];

/** The last column with `-o wide`. */
export const MESSAGE_COLUMN: PrinterColumn = {
  name: "Message",
  type: "string",
  description: "Message of the condition Ready.",
  jsonPath: conditionPath("Ready", "message"),
  priority: 1,
};

/** The age of the object, the last column without `-o wide`. */
export const AGE_COLUMN: PrinterColumn = {
  name: "Age",
  type: "date",
  description: "Time since the object was created.",
  jsonPath: ".metadata.creationTimestamp",
};

const ownerReferenceSchema = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  name: z.string(),
  uid: z.string(),
  controller: z.boolean().exactOptional(),
});

const stringMapSchema = z.record(z.string(), z.string());

/**
 * The schema of metav1.ObjectMeta, for the fields that the project reads. Other fields are kept unchanged,
 * since the API server has checked them. The type is assignable to ObjectMeta in src/kube/types.ts, so
 * optional fields cannot be undefined.
 */
export const objectMetaSchema = z.looseObject({
  name: z.string().exactOptional(),
  generateName: z.string().exactOptional(),
  namespace: z.string().exactOptional(),
  uid: z.string().exactOptional(),
  resourceVersion: z.string().exactOptional(),
  generation: z.int().exactOptional(),
  labels: stringMapSchema.exactOptional(),
  annotations: stringMapSchema.exactOptional(),
  creationTimestamp: z.string().exactOptional(),
  deletionTimestamp: z.string().exactOptional(),
  finalizers: z.array(z.string()).exactOptional(),
  ownerReferences: z.array(ownerReferenceSchema).exactOptional(),
});
