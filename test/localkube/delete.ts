// Deletes one object: preconditions, finalizers, grace period, propagation policy. The consequences (dependents, the content of a
// namespace or definition) are in garbage.ts.

import type { Backend } from "./backend.ts";
import { CLEANUP_FINALIZER, DEFINITIONS } from "./crd.ts";
import { badRequest, conflict } from "./failures.ts";
import { asObject, asString, isObject, type StoredObject, timestamp } from "./model/object.ts";
import { type ResourceType, storageKey } from "./model/registry.ts";
import { finishDeletion } from "./write.ts";

/** The fields of metav1.DeleteOptions that localkube supports. */
export interface DeleteOptions {
  readonly dryRun: boolean;
  readonly gracePeriodSeconds?: number;
  readonly propagationPolicy: "Background" | "Foreground" | "Orphan";
  readonly uid: string;
  readonly resourceVersion: string;
}

const POLICIES = ["Background", "Foreground", "Orphan"] as const;

/** The DeleteOptions of the body, else of the query. @throws StatusError BadRequest */
export function readDeleteOptions(body: unknown, query: URLSearchParams): DeleteOptions {
  const given = isObject(body) ? body : {};
  const preconditions = asObject(given.preconditions);
  const orphan = given.orphanDependents ?? query.get("orphanDependents") === "true";
  const policy = given.propagationPolicy ?? query.get("propagationPolicy") ?? (orphan === true ? "Orphan" : "Background");
  const known = POLICIES.find((item) => item === policy);
  if (known === undefined) throw badRequest(`reading DeleteOptions: unknown propagationPolicy ${JSON.stringify(policy)}`);
  const grace = given.gracePeriodSeconds ?? query.get("gracePeriodSeconds") ?? undefined;
  return {
    dryRun: given.dryRun !== undefined || query.has("dryRun"),
    propagationPolicy: known,
    uid: asString(preconditions.uid),
    resourceVersion: asString(preconditions.resourceVersion),
    ...(grace === undefined ? {} : { gracePeriodSeconds: Number(grace) }),
  };
}

/**
 * Deletes an object, or only marks it if finalizers or a grace period hold it.
 * @returns the object's last state, and whether it is gone
 * @throws StatusError Conflict if a precondition fails
 */
export function deleteObject(
  backend: Backend,
  type: ResourceType,
  existing: StoredObject,
  options: DeleteOptions,
): { object: StoredObject; gone: boolean } {
  checkPreconditions(type, existing, options);
  const grace = graceOf(type, existing, options);
  const finalizers = finalizersOf(backend, type, existing, options);
  const isNamespace = storageKey(type) === "/namespaces";
  if (finalizers.length === 0 && grace === 0 && !isNamespace) {
    if (options.dryRun) return { object: existing, gone: true };
    return {
      object: backend.store.remove(storageKey(type), existing.metadata.namespace, existing.metadata.name) ?? existing,
      gone: true,
    };
  }
  const marked = mark(backend, existing, finalizers, grace, isNamespace);
  if (marked === existing || options.dryRun) return { object: marked, gone: false };
  const object = backend.store.put(storageKey(type), marked);
  return { object, gone: finishDeletion(backend, type, object) };
}

function checkPreconditions(type: ResourceType, existing: StoredObject, options: DeleteOptions): void {
  const { name, uid, resourceVersion } = existing.metadata;
  if (options.uid !== "" && options.uid !== uid) {
    throw conflict(type, name, `the UID in the precondition (${options.uid}) does not match the UID in record (${uid})`);
  }
  if (options.resourceVersion !== "" && options.resourceVersion !== resourceVersion) {
    const versions = `(${options.resourceVersion}) does not match the ResourceVersion in record (${resourceVersion})`;
    throw conflict(type, name, `the ResourceVersion in the precondition ${versions}`);
  }
}

// Only a pod on a node has a grace period. Its kubelet then deletes it with grace period 0.
function graceOf(type: ResourceType, existing: StoredObject, options: DeleteOptions): number {
  if (storageKey(type) !== "/pods") return 0;
  const spec = asObject(existing.spec);
  const phase = asString(asObject(existing.status).phase);
  if (asString(spec.nodeName) === "" || phase === "Succeeded" || phase === "Failed") return 0;
  return Math.max(0, options.gracePeriodSeconds ?? Number(spec.terminationGracePeriodSeconds ?? 30));
}

function finalizersOf(backend: Backend, type: ResourceType, existing: StoredObject, options: DeleteOptions): string[] {
  const finalizers = new Set(existing.metadata.finalizers);
  if (options.propagationPolicy === "Orphan") finalizers.add("orphan");
  if (options.propagationPolicy === "Foreground") finalizers.add("foregroundDeletion");
  if (storageKey(type) === DEFINITIONS && hasInstances(backend, existing)) finalizers.add(CLEANUP_FINALIZER);
  return [...finalizers];
}

function hasInstances(backend: Backend, definition: StoredObject): boolean {
  const spec = asObject(definition.spec);
  const key = `${asString(spec.group)}/${asString(asObject(spec.names).plural)}`;
  return backend.store.entries(key).length > 0;
}

function mark(backend: Backend, existing: StoredObject, finalizers: string[], grace: number, isNamespace: boolean): StoredObject {
  const { metadata } = existing;
  const already = metadata.deletionTimestamp !== undefined;
  if (already && grace >= (metadata.deletionGracePeriodSeconds ?? 0) && finalizers.length === (metadata.finalizers ?? []).length)
    return existing;
  return {
    ...existing,
    metadata: {
      ...metadata,
      ...(finalizers.length === 0 ? {} : { finalizers }),
      deletionTimestamp: metadata.deletionTimestamp ?? timestamp(backend.clock.now() + grace * 1000),
      ...(isNamespace ? {} : { deletionGracePeriodSeconds: grace }),
      ...(metadata.generation === undefined || already ? {} : { generation: metadata.generation + 1 }),
    },
    ...(isNamespace ? { status: { ...asObject(existing.status), phase: "Terminating" } } : {}),
  };
}
