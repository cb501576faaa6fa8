// The descriptor of a kind, its URLs and the form of its objects. Every name in a path is escaped, so no
// object name can reach another resource.
import { MeshError } from "../../base/errors.ts";
import { JSON_TYPE } from "../media-types.ts";
import type { GroupResource, GroupVersionResource, KubeObject } from "../types.ts";

declare const objectType: unique symbol;

/** A kind of the API, with the type of its objects. */
export interface Resource<T extends KubeObject = KubeObject> extends GroupVersionResource {
  readonly kind: string;
  readonly namespaced: boolean;
  /** Requests objects as PartialObjectMetadata: only apiVersion, kind and metadata. */
  readonly metadataOnly?: boolean;
  /** Never set. It ties the type of the objects to the descriptor. */
  readonly [objectType]?: T;
}

/** Cluster-scoped kinds have no namespace. */
export interface ObjectRef {
  readonly namespace?: string | undefined;
  readonly name: string;
}

export function metadataOnly(resource: Resource): Resource<KubeObject> {
  const { group, version, resource: plural, kind, namespaced } = resource;
  return { group, version, resource: plural, kind, namespaced, metadataOnly: true };
}

/** "group/version", or "version" for the core group. */
export function apiVersionOf({ group, version }: Pick<GroupVersionResource, "group" | "version">): string {
  return group === "" ? version : `${group}/${version}`;
}

/** "pods" or "leases.coordination.k8s.io", for messages and labels. */
export function resourceName({ group, resource }: GroupResource): string {
  return group === "" ? resource : `${resource}.${group}`;
}

/** The path of the collection: of one namespace, or of all if `namespace` is empty. */
export function collectionPath(resource: Resource, namespace = ""): string {
  const root = resource.group === "" ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`;
  if (namespace === "") return `${root}/${resource.resource}`;
  if (!resource.namespaced) throw new MeshError("BAD_OBJECT_REF", `addressing ${resourceName(resource)}: it has no namespaces`);
  return `${root}/namespaces/${segment(namespace)}/${resource.resource}`;
}

/** Throws `BAD_OBJECT_REF` if the name, or the namespace of a namespaced kind, is missing. */
export function objectPath(resource: Resource, ref: ObjectRef, subresource = ""): string {
  if (ref.name === "" || (resource.namespaced && !ref.namespace)) {
    throw new MeshError("BAD_OBJECT_REF", `addressing ${resourceName(resource)}: name and namespace must be given`);
  }
  const path = `${collectionPath(resource, resource.namespaced ? ref.namespace : "")}/${segment(ref.name)}`;
  return subresource === "" ? path : `${path}/${subresource}`;
}

function segment(name: string): string {
  if (name === "." || name === "..") throw new MeshError("BAD_OBJECT_REF", `addressing an object: ${name} is not a valid name`);
  return encodeURIComponent(name);
}

export type QueryValue = string | number | boolean | undefined;

/** A query string with its "?", or "" if every value is absent or empty. */
export function formatQuery(values: Readonly<Record<string, QueryValue>>): string {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(values)) {
    if (value !== undefined && value !== "" && value !== false) query.set(key, String(value));
  }
  return query.size === 0 ? "" : `?${query}`;
}

/**
 * The Accept header: JSON, and for a metadata-only resource its partial form first. A server that does not
 * know that form returns whole objects.
 */
export function acceptOf(resource: Resource, verb: "get" | "list" | "watch"): string {
  if (resource.metadataOnly !== true) return JSON_TYPE;
  const kind = verb === "list" ? "PartialObjectMetadataList" : "PartialObjectMetadata";
  return `${JSON_TYPE};as=${kind};g=meta.k8s.io;v=v1,${JSON_TYPE}`;
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
