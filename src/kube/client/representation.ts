// In which form objects are asked for, and how the answer is brought into the form that was asked for. Pure. Invariant:
// a server that does not know PartialObjectMetadata gives the same objects, only with more bytes on the wire.
import { JSON_TYPE } from "../media-types.ts";
import type { KubeObject } from "../types.ts";
import { apiVersionOf, type Resource } from "./resource.ts";

const PARTIAL = "g=meta.k8s.io;v=v1";

/** The Accept header: JSON, and for a metadata-only resource its partial form first. */
export function acceptOf(resource: Resource, verb: "get" | "list" | "watch"): string {
  if (resource.metadataOnly !== true) return JSON_TYPE;
  const kind = verb === "list" ? "PartialObjectMetadataList" : "PartialObjectMetadata";
  return `${JSON_TYPE};as=${kind};${PARTIAL},${JSON_TYPE}`;
}

/**
 * What makes an object that the server sent into one of T. T is what the descriptor says it is; nothing checks it here.
 * Metadata-only objects keep nothing else, and get the kind of their resource instead of PartialObjectMetadata.
 */
export function projectionOf<T extends KubeObject>(resource: Resource<T>): (object: KubeObject) => T {
  if (resource.metadataOnly !== true) return (object) => object as T;
  const type = { apiVersion: apiVersionOf(resource), kind: resource.kind };
  return ({ metadata }) => ({ ...type, metadata }) as KubeObject as T;
}
