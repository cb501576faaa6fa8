// The schema of metav1.ObjectMeta, for the fields that the project reads. Invariant: other fields are kept
// unchanged, since the API server has checked them; the type is assignable to ObjectMeta in
// src/kube/types.ts.
import { z } from "zod";

const ownerReferenceSchema = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  name: z.string(),
  uid: z.string(),
  controller: z.boolean().exactOptional(),
});

const stringMapSchema = z.record(z.string(), z.string());

/** Optional fields cannot be undefined, as in src/kube/types.ts. */
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
