// Creates and updates, for every kind and subresource. All checks come before the one write to the store. As on the API server,
// an update without a change keeps the resourceVersion. Called by resource-handler.ts.
import type { Backend } from "./backend.ts";
import { prepareCustomDefinition } from "./crd.ts";
import { alreadyExists, badRequest, conflict, forbidden, invalid, notFound, staleVersion } from "./failures.ts";
import { prepareNew, prepareUpdate } from "./kinds.ts";
import { checkEnvelope, checkMetadata, generateName, newMetadata, updatedMetadata } from "./metadata.ts";
import {
  asArray,
  asObject,
  asString,
  deepEqual,
  type JsonObject,
  type ManagedFields,
  type StoredObject,
  timestamp,
} from "./model/object.ts";
import { apiVersionOf, type ResourceType, storageKey } from "./model/registry.ts";
import { applyDefaults, prune, validate } from "./model/schema.ts";
import { fieldsAfterUpdate, type Writer } from "./patch/apply.ts";
import type { Place } from "./patch/field-set.ts";

/** A write without its body. */
export interface WriteRequest {
  readonly type: ResourceType;
  /** "" for cluster-scoped kinds. */
  readonly namespace: string;
  /** "", "status" or another subresource that writes the object. */
  readonly subresource: string;
  readonly dryRun: boolean;
  readonly fieldManager: string;
  /** Refuses unknown fields instead of dropping them. */
  readonly strict: boolean;
  /** The managedFields of a server-side apply; absent for every other write. */
  readonly managedFields?: ManagedFields[];
}

export function placeOf(type: ResourceType): Place {
  return { names: [], custom: type.custom, schema: type.schema };
}

export function writerOf(request: WriteRequest, backend: Backend): Writer {
  return {
    manager: request.fieldManager,
    apiVersion: apiVersionOf(request.type),
    time: timestamp(backend.clock.now()),
    subresource: request.subresource,
  };
}

/**
 * Creates an object.
 * @param name the name in the path, for creation by PUT or apply; "" otherwise
 * @throws StatusError
 */
export function createObject(backend: Backend, request: WriteRequest, body: unknown, name = ""): StoredObject {
  const { type, namespace } = request;
  const envelope = checkEnvelope(structuredClone(body), type.kind, apiVersionOf(type), !type.custom);
  const metadata = asObject(envelope.metadata);
  checkPlace(type, namespace, metadata);
  const generated = asString(metadata.name) === "" && asString(metadata.generateName) !== "";
  const ownName =
    name || asString(metadata.name) || (generated ? generateName(asString(metadata.generateName), backend.random) : "");
  checkNamespace(backend, type, namespace, ownName);
  const time = timestamp(backend.clock.now());
  const draft = {
    ...envelope,
    metadata: newMetadata(type, envelope, { namespace, name: ownName, uid: backend.newUid(), time }),
  } as StoredObject;
  checkMetadata(type, draft.metadata);
  if (asString(metadata.resourceVersion) !== "") throw badRequest("resourceVersion should not be set on objects to be created");
  if (type.status && type.resource !== "nodes") delete draft.status;
  prepareNew(draft, type, backend.allocateAddress);
  prepareCustomDefinition(draft, type, undefined, time);
  checkSchema(draft, request);
  if (backend.store.get(storageKey(type), draft.metadata.namespace, ownName) !== undefined) throw alreadyExists(type, ownName);
  recordManager(backend, request, undefined, draft);
  return request.dryRun ? draft : backend.store.put(storageKey(type), draft);
}

/**
 * Replaces an object, or the part of it that the subresource covers.
 * @throws StatusError
 */
export function updateObject(backend: Backend, request: WriteRequest, existing: StoredObject, body: unknown): StoredObject {
  const { type, namespace } = request;
  const incoming = checkEnvelope(structuredClone(body), type.kind, apiVersionOf(type), !type.custom);
  const metadata = asObject(incoming.metadata);
  checkPlace(type, namespace, metadata);
  checkIdentity(type, existing, metadata);
  checkVersion(type, existing, metadata);
  const draft = nextState(request, existing, incoming);
  checkMetadata(type, draft.metadata);
  checkNewFinalizers(type, existing, draft);
  if (request.subresource === "") prepareUpdate(draft, existing, type);
  prepareCustomDefinition(draft, type, existing, timestamp(backend.clock.now()));
  checkSchema(draft, request);
  bumpGeneration(type, existing, draft);
  recordManager(backend, request, existing, draft);
  if (isSame(existing, draft)) return existing;
  if (request.dryRun) return draft;
  const stored = backend.store.put(storageKey(type), draft);
  finishDeletion(backend, type, stored);
  return stored;
}

/** Removes an object that is being deleted and has no finalizers. */
export function finishDeletion(backend: Backend, type: ResourceType, object: StoredObject): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0, finalizers = [], namespace, name } = object.metadata;
  if (deletionTimestamp === undefined || deletionGracePeriodSeconds > 0 || finalizers.length > 0) return false;
  if (storageKey(type) === "/namespaces" && asArray(asObject(object.spec).finalizers).length > 0) return false;
  backend.store.remove(storageKey(type), namespace, name);
  return true;
}

function nextState({ subresource, type }: WriteRequest, existing: StoredObject, incoming: JsonObject): StoredObject {
  const envelope = { apiVersion: apiVersionOf(type), kind: type.kind };
  if (subresource === "finalize") {
    const spec = { ...asObject(existing.spec), finalizers: asArray(asObject(incoming.spec).finalizers) };
    return { ...existing, ...envelope, spec, metadata: { ...existing.metadata } };
  }
  if (subresource === "status") {
    // In a custom resource only the status changes; in the built-in kinds metadata may change too.
    const metadata = type.custom ? { ...existing.metadata } : updatedMetadata(existing, incoming);
    return withField({ ...existing, ...envelope, metadata }, "status", incoming.status);
  }
  const draft = { ...incoming, ...envelope, metadata: updatedMetadata(existing, incoming) } as StoredObject;
  return type.status ? withField(draft, "status", existing.status) : draft;
}

function withField(object: StoredObject, field: string, value: unknown): StoredObject {
  const { [field]: _old, ...rest } = object;
  return (value === undefined ? rest : { ...rest, [field]: value }) as StoredObject;
}

function checkPlace(type: ResourceType, namespace: string, metadata: JsonObject): void {
  const given = asString(metadata.namespace);
  if (type.namespaced && given !== "" && given !== namespace) {
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
  }
}

function checkNamespace(backend: Backend, type: ResourceType, namespace: string, name: string): void {
  if (!type.namespaced) return;
  const found = backend.store.get("/namespaces", undefined, namespace);
  if (found === undefined) throw notFound({ group: "", resource: "namespaces" }, namespace);
  if (found.metadata.deletionTimestamp === undefined) return;
  const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
  throw forbidden(type, name, why, [
    { reason: "NamespaceTerminating", message: `namespace ${namespace} is being terminated`, field: "metadata.namespace" },
  ]);
}

function checkIdentity(type: ResourceType, existing: StoredObject, metadata: JsonObject): void {
  const { name, uid } = existing.metadata;
  const given = asString(metadata.name);
  if (given !== "" && given !== name)
    throw badRequest(`the name of the object (${given}) does not match the name on the URL (${name})`);
  const givenUid = asString(metadata.uid);
  if (givenUid !== "" && givenUid !== uid) {
    throw conflict(type, name, `Precondition failed: UID in precondition: ${givenUid}, UID in object meta: ${uid}`);
  }
}

function checkVersion(type: ResourceType, existing: StoredObject, metadata: JsonObject): void {
  const { name, resourceVersion } = existing.metadata;
  const given = asString(metadata.resourceVersion);
  if (given === "" || given === "0") {
    if (type.unconditionalUpdate) return;
    const message = "Invalid value: 0: must be specified for an update";
    throw invalid(type, name, [{ reason: "FieldValueInvalid", field: "metadata.resourceVersion", message }]);
  }
  if (given !== resourceVersion) throw staleVersion(type, name);
}

function checkNewFinalizers(type: ResourceType, existing: StoredObject, draft: StoredObject): void {
  if (existing.metadata.deletionTimestamp === undefined) return;
  const added = (draft.metadata.finalizers ?? []).filter((item) => !existing.metadata.finalizers?.includes(item));
  if (added.length === 0) return;
  const message = `Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers ${JSON.stringify(added)}`;
  throw invalid(type, existing.metadata.name, [{ reason: "FieldValueForbidden", field: "metadata.finalizers", message }]);
}

function checkSchema(draft: StoredObject, { type, strict }: WriteRequest): void {
  if (type.schema === undefined) return;
  const unknown = prune(draft, type.schema);
  if (strict && unknown.length > 0) {
    const list = unknown.map((field) => `unknown field ${JSON.stringify(field)}`).join(", ");
    throw badRequest(
      `${type.kind} in version ${JSON.stringify(type.version)} cannot be handled as a ${type.kind}: strict decoding error: ${list}`,
    );
  }
  applyDefaults(draft, type.schema);
  const problems = validate(draft, type.schema);
  if (problems.length > 0) throw invalid(type, draft.metadata.name, problems);
}

function bumpGeneration(type: ResourceType, existing: StoredObject, draft: StoredObject): void {
  if (!type.generation) return;
  const specOf = ({ metadata: _m, apiVersion: _v, ...rest }: StoredObject) =>
    type.status ? { ...rest, status: undefined } : rest;
  if (!deepEqual(specOf(existing), specOf(draft))) draft.metadata.generation = (existing.metadata.generation ?? 0) + 1;
}

function recordManager(backend: Backend, request: WriteRequest, existing: StoredObject | undefined, draft: StoredObject): void {
  const fields =
    request.managedFields ??
    fieldsAfterUpdate(existing, draft, placeOf(request.type), writerOf(request, backend), existing?.metadata.managedFields ?? []);
  if (fields.length > 0) draft.metadata.managedFields = fields;
  else delete draft.metadata.managedFields;
}

// Times in managedFields do not count as a change.
function isSame(existing: StoredObject, draft: StoredObject): boolean {
  const plain = (object: StoredObject) => ({
    ...object,
    apiVersion: "",
    metadata: { ...object.metadata, managedFields: object.metadata.managedFields?.map((entry) => ({ ...entry, time: "" })) },
  });
  return deepEqual(plain(existing), plain(draft));
}
