// The form in which objects are requested, and the projection of an answer to that form. A server that does
// not know PartialObjectMetadata returns the same objects with more bytes. Pure; called by client.ts, list.ts
// and watch.ts.
import { JSON_TYPE } from "../media-types.ts";
import type { KubeObject } from "../types.ts";
import { apiVersionOf, type Resource } from "./resource.ts";

const PARTIAL = "g=meta.k8s.io;v=v1";

/** The Accept header: JSON; for a metadata-only resource its partial form first. */
export function acceptOf(resource: Resource, verb: "get" | "list" | "watch"): string {
  if (resource.metadataOnly !== true) return JSON_TYPE;
  const kind = verb === "list" ? "PartialObjectMetadataList" : "PartialObjectMetadata";
  return `${JSON_TYPE};as=${kind};${PARTIAL},${JSON_TYPE}`;
}

/**
 * The function that turns an object of the server into a T. Nothing checks T, which the descriptor states. A
 * metadata-only object keeps nothing else and gets the kind of its resource instead of PartialObjectMetadata.
 */
export function projectionOf<T extends KubeObject>(resource: Resource<T>): (object: KubeObject) => T {
  if (resource.metadataOnly !== true) return (object) => object as T;
  const type = { apiVersion: apiVersionOf(resource), kind: resource.kind };
  return ({ metadata }) => ({ ...type, metadata }) as KubeObject as T;
}
