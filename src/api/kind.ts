// The definition of a custom resource: names, scope, columns and schema. crd.ts derives its
// CustomResourceDefinition.
import type { z } from "zod";

/** A column of `kubectl get` (apiextensions/v1 CustomResourceColumnDefinition). */
export interface PrinterColumn {
  readonly name: string;
  readonly type: "string" | "integer" | "date";
  readonly description: string;
  readonly jsonPath: string;
  /** 0: always shown. 1: shown only with `-o wide`. */
  readonly priority?: 0 | 1;
}

/** A custom resource. */
export interface KindDefinition {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly scope: "Namespaced" | "Cluster";
  readonly columns: readonly PrinterColumn[];
  /** The whole object, with apiVersion, kind and metadata. */
  readonly schema: z.ZodObject;
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
