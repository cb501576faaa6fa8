// metav1.ObjectMeta as far as the project reads it. Everything else in it is passed on as it is; the API server has
// checked it already, so only what would mislead us is checked here. Assignable to ObjectMeta of src/kube/types.ts.
import { z } from "zod";

const ownerReferenceSchema = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  name: z.string(),
  uid: z.string(),
  controller: z.boolean().exactOptional(),
});

const stringMapSchema = z.record(z.string(), z.string());

/** Exactly optional, as in src/kube/types.ts, so that the two types fit each other. */
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
