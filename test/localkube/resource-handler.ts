// The verbs on objects: turns an authenticated, decoded request into an outcome, synchronously and without HTTP. Watches are in
// connection.ts, which owns the connection.

import { APPLY_YAML_TYPE } from "../../src/kube/media-types.ts";
import type { ResourceInfo } from "../../src/kube/request-info.ts";
import { StatusError } from "../../src/kube/status.ts";
import type { Authenticator, User } from "./auth.ts";
import type { Backend } from "./backend.ts";
import { deleteObject, readDeleteOptions } from "./delete.ts";
import { badRequest, conflict, invalid, noSuchResource, notFound } from "./failures.ts";
import { type ListResult, listObjects } from "./list.ts";
import { checkEnvelope } from "./metadata.ts";
import { asObject, asString, isObject, type StoredObject } from "./model/object.ts";
import { apiVersionOf, type ResourceType, storageKey } from "./model/registry.ts";
import { applyConfiguration } from "./patch/apply.ts";
import { patchObject } from "./patch/patch.ts";
import { answerEviction, answerReview, answerTokenRequest } from "./reviews.ts";
import { createSelection } from "./selection.ts";
import { createObject, placeOf, updateObject, type WriteRequest, writerOf } from "./write.ts";

export interface ResourceRequest {
  readonly info: ResourceInfo;
  readonly type: ResourceType;
  readonly user: User;
  readonly userAgent: string;
  /** Media type of the body, without parameters. */
  readonly mediaType: string;
  /** The decoded body; undefined if empty. */
  readonly body: unknown;
}

export type Outcome =
  | { readonly code: number; readonly object: StoredObject }
  | { readonly code: number; readonly list: ListResult }
  | { readonly code: number; readonly json: unknown };

/** Finds the kind of a request. @throws StatusError NotFound or MethodNotAllowed */
export function resolveType(backend: Backend, info: ResourceInfo): ResourceType {
  const type = backend.registry.find(info.group, info.version, info.resource);
  if (type === undefined) throw noSuchResource();
  if (type.namespaced ? info.namespace === "" && info.nameInPath : info.namespace !== "" && info.resource !== "namespaces")
    throw noSuchResource();
  if (
    info.subresource !== "" &&
    !(info.subresource === "status" && type.status) &&
    type.subresources[info.subresource] === undefined
  )
    throw noSuchResource();
  if (!allows(type, info)) {
    throw new StatusError("MethodNotAllowed", "the server does not allow this method on the requested resource", {});
  }
  return type;
}

function allows(type: ResourceType, { verb, nameInPath, subresource }: ResourceInfo): boolean {
  if (verb === "create") return !nameInPath || (subresource !== "" && subresource !== "status");
  if (type.virtual || (verb === "deletecollection" && !type.deleteCollection)) return false;
  return nameInPath || (verb !== "update" && verb !== "patch");
}

/** Answers any request but a watch. @throws StatusError */
export function handleResource(backend: Backend, auth: Authenticator, request: ResourceRequest): Outcome {
  const { info, type } = request;
  switch (info.verb) {
    case "get":
      return { code: 200, object: existing(backend, request) };
    case "list":
      return {
        code: 200,
        list: listObjects(backend.store, type, createSelection(type, scopeOf(request), info.query), info.query),
      };
    case "create":
      return create(backend, auth, request);
    case "update":
      return update(backend, request);
    case "patch":
      return request.mediaType === APPLY_YAML_TYPE ? apply(backend, request) : patch(backend, request);
    case "delete":
      return remove(backend, request);
    case "deletecollection":
      return removeCollection(backend, request);
    default:
      throw noSuchResource();
  }
}

/** The namespace of a list or watch; "" for all namespaces. */
export function scopeOf({ info, type }: Pick<ResourceRequest, "info" | "type">): string {
  return type.namespaced ? info.namespace : "";
}

function lookUp(backend: Backend, { info, type }: ResourceRequest): StoredObject | undefined {
  return backend.store.get(storageKey(type), type.namespaced ? info.namespace : undefined, info.name);
}

function existing(backend: Backend, request: ResourceRequest): StoredObject {
  const object = lookUp(backend, request);
  if (object === undefined) throw notFound(request.type, request.info.name);
  return object;
}

function writeRequest({ info, type, userAgent }: ResourceRequest): WriteRequest {
  return {
    type,
    namespace: type.namespaced ? info.namespace : "",
    subresource: info.subresource,
    dryRun: info.query.has("dryRun"),
    fieldManager: info.query.get("fieldManager") || userAgent.split("/")[0] || "unknown",
    strict: info.query.get("fieldValidation") === "Strict",
  };
}

function bodyOf(request: ResourceRequest): unknown {
  if (request.body === undefined) throw badRequest("the body of the request is empty");
  return request.body;
}

function create(backend: Backend, auth: Authenticator, request: ResourceRequest): Outcome {
  const { info, type } = request;
  const body = bodyOf(request);
  if (type.virtual) return { code: 201, json: answerReview(type, body, request.user, auth) };
  if (info.subresource === "token")
    return { code: 201, json: answerTokenRequest(backend, auth, existing(backend, request), body) };
  if (info.subresource === "eviction")
    return { code: 201, json: answerEviction(backend, type, existing(backend, request), body) };
  return { code: 201, object: createObject(backend, writeRequest(request), body) };
}

function update(backend: Backend, request: ResourceRequest): Outcome {
  const { info, type } = request;
  const body = bodyOf(request);
  const current = lookUp(backend, request);
  if (current !== undefined) return { code: 200, object: updateObject(backend, writeRequest(request), current, body) };
  if (!type.createOnUpdate || info.subresource !== "") throw notFound(type, info.name);
  const { resourceVersion: _version, uid: _uid, ...metadata } = asObject(asObject(body).metadata);
  return { code: 201, object: createObject(backend, writeRequest(request), { ...asObject(body), metadata }, info.name) };
}

function patch(backend: Backend, request: ResourceRequest): Outcome {
  const current = existing(backend, request);
  const shown = { ...current, apiVersion: apiVersionOf(request.type) };
  const patched = patchObject(request.type, shown, request.mediaType, bodyOf(request));
  return { code: 200, object: updateObject(backend, writeRequest(request), current, patched) };
}

function apply(backend: Backend, request: ResourceRequest): Outcome {
  const { info, type } = request;
  const body = bodyOf(request);
  if (!info.query.get("fieldManager")) {
    const message = "Required value: is required for apply patch";
    throw invalid({ group: "meta.k8s.io", kind: "PatchOptions" }, "", [
      { reason: "FieldValueRequired", field: "fieldManager", message },
    ]);
  }
  const applied = checkEnvelope(body, type.kind, apiVersionOf(type), false);
  const metadata = asObject(applied.metadata);
  if (metadata.managedFields !== undefined) throw badRequest("metadata.managedFields must be nil");
  const current = lookUp(backend, request);
  if (current === undefined && (asString(metadata.uid) !== "" || info.subresource !== "")) {
    throw info.subresource === ""
      ? conflict(type, info.name, "uid mismatch: the provided object specified a uid, and no existing object was found")
      : notFound(type, info.name);
  }
  const write = writeRequest(request);
  const force = info.query.get("force") === "true";
  const { object, managedFields } = applyConfiguration(current, applied, placeOf(type), writerOf(write, backend), force);
  const withManagers = { ...write, managedFields };
  if (current === undefined) return { code: 201, object: createObject(backend, withManagers, object, info.name) };
  return { code: 200, object: updateObject(backend, withManagers, current, object) };
}

function remove(backend: Backend, request: ResourceRequest): Outcome {
  const { type, info } = request;
  const options = readDeleteOptions(request.body, info.query);
  const { object, gone } = deleteObject(backend, type, existing(backend, request), options);
  if (!gone || type.returnsDeleted) return { code: 200, object };
  const details = {
    name: object.metadata.name,
    ...(type.group === "" ? {} : { group: type.group }),
    kind: type.resource,
    uid: object.metadata.uid,
  };
  return { code: 200, json: { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", details } };
}

function removeCollection(backend: Backend, request: ResourceRequest): Outcome {
  const { type, info } = request;
  const query = new URLSearchParams(info.query);
  for (const name of ["limit", "continue", "resourceVersion", "resourceVersionMatch"]) query.delete(name);
  const selected = listObjects(backend.store, type, createSelection(type, scopeOf(request), query), query);
  const options = readDeleteOptions(isObject(request.body) ? request.body : undefined, info.query);
  const items = selected.items.map((object) => deleteObject(backend, type, object, options).object);
  return { code: 200, list: { items, metadata: { resourceVersion: String(backend.store.version) } } };
}
