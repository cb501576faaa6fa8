// The definition of a custom resource: names, scope, columns and schema. crd.ts makes the CRD from it.
import { z } from "zod";
import type { Resource } from "../kube/client/resource.ts";
import type { KubeObject } from "../kube/types.ts";

/** A column of `kubectl get`. */
export interface PrinterColumn {
  readonly name: string;
  readonly type: "string" | "integer" | "date";
  readonly description: string;
  readonly jsonPath: string;
  /** 1: shown only with `-o wide`. */
  readonly priority?: 1;
}

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

/** Defines a namespaced kind with a spec, and with a status that only the manager writes. */
export function defineKind<
  const Group extends string,
  const Kind extends string,
  Metadata extends z.ZodType,
  Spec extends z.ZodType,
  Status extends z.ZodType,
>(parts: {
  readonly group: Group;
  readonly kind: Kind;
  readonly plural: string;
  readonly shortName: string;
  readonly description: string;
  readonly columns: readonly PrinterColumn[];
  readonly metadata: Metadata;
  readonly spec: Spec;
  readonly status: Status;
}) {
  const { group, kind, plural, shortName, description, columns, metadata, spec, status } = parts;
  const schema = z.strictObject({
    apiVersion: z.literal<`${Group}/v1alpha1`>(`${group}/v1alpha1`),
    kind: z.literal(kind),
    metadata,
    spec,
    // A status that this version cannot read counts as none; the manager writes it again.
    status: z
      .optional(status)
      .catch(undefined)
      .describe("The state that the manager last observed. Only the manager writes the status."),
  });
  const shortNames = [shortName];
  return { group, kind, plural, shortNames, scope: "Namespaced", columns, schema: schema.describe(description) } as const;
}

export function resourceOf<T extends KubeObject>({ group, plural, kind, scope }: KindDefinition): Resource<T> {
  return { group, version: "v1alpha1", resource: plural, kind, namespaced: scope === "Namespaced" };
}

export const KRUISE_GROUP = "ctrlmesh.kruise.io";
export const KUSIONSTACK_GROUP = "ctrlmesh.kusionstack.io";

/** The advice for a field that cannot be changed. */
export function recreateAdvice(kind: string): string {
  return `delete this ${kind}, wait until it is deleted, and create it again`;
}

export function integerColumn(name: string, jsonPath: string, description: string): PrinterColumn {
  return { name, type: "integer", description, jsonPath };
}

export function textColumn(name: string, jsonPath: string, description: string): PrinterColumn {
  return { name, type: "string", description, jsonPath };
}

/** The columns of a condition: its status, its reason, and with `-o wide` its message. */
export function conditionColumns(type: string) {
  const path = `.status.conditions[?(@.type=="${type}")]`;
  return {
    status: textColumn(type, `${path}.status`, `Status of the condition ${type}.`),
    reason: textColumn("Reason", `${path}.reason`, `Reason of the condition ${type}, as one word.`),
    message: { ...textColumn("Message", `${path}.message`, `Message of the condition ${type}.`), priority: 1 as const },
  };
}

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

/** The fields that the project reads. Others are kept. The type is assignable to ObjectMeta of src/kube. */
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
