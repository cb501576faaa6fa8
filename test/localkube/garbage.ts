// The consequences of a deletion, which controllers carry out in a real cluster. Dependents of a deleted owner are deleted
// (background), waited for (foreground) or released (orphan); a terminating namespace loses its content, a definition its
// objects.
//
// Every pass reads the whole store. Each deletion starts a pass, and passes repeat until nothing changes.
import type { Timer } from "../../src/base/clock.ts";
import type { Backend } from "./backend.ts";
import { CLEANUP_FINALIZER, DEFINITIONS } from "./crd.ts";
import { deleteObject } from "./delete.ts";
import { asObject, asString, type StoredObject } from "./model/object.ts";
import { storageKey } from "./model/registry.ts";
import type { StoreEvent } from "./store.ts";
import { finishDeletion } from "./write.ts";

interface Ref {
  readonly resource: string;
  readonly object: StoredObject;
}

const BACKGROUND = {
  dryRun: false,
  propagationPolicy: "Background",
  uid: "",
  resourceVersion: "",
  gracePeriodSeconds: 0,
} as const;

export class GarbageCollector {
  readonly #backend: Backend;
  readonly #dependents = new Map<string, Set<string>>();
  readonly #objects = new Map<string, Ref>();
  readonly #suspects = new Set<string>();
  readonly #terminating = new Set<string>();
  #timer: Timer | undefined;

  constructor(backend: Backend) {
    this.#backend = backend;
    backend.store.listenAll((resource, event) => this.#observe(resource, event));
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #observe(resource: string, { type, object, previous }: StoreEvent): void {
    const { uid, deletionTimestamp, ownerReferences = [] } = object.metadata;
    for (const owner of previous?.metadata.ownerReferences ?? []) this.#dependents.get(owner.uid)?.delete(uid);
    if (type === "DELETED") {
      this.#objects.delete(uid);
      this.#terminating.delete(uid);
      for (const dependent of this.#dependents.get(uid) ?? []) this.#suspects.add(dependent);
      this.#dependents.delete(uid);
    } else {
      this.#objects.set(uid, { resource, object });
      for (const owner of ownerReferences) this.#dependentsOf(owner.uid).add(uid);
      if (ownerReferences.length > 0) this.#suspects.add(uid);
      if (deletionTimestamp !== undefined) this.#terminating.add(uid);
    }
    if (this.#suspects.size > 0 || this.#terminating.size > 0) this.#schedule();
  }

  #dependentsOf(uid: string): Set<string> {
    const set = this.#dependents.get(uid) ?? new Set();
    this.#dependents.set(uid, set);
    return set;
  }

  #schedule(): void {
    this.#timer ??= this.#backend.clock.after(0, () => {
      this.#timer = undefined;
      this.#pass();
    });
  }

  #pass(): void {
    const suspects = [...this.#suspects];
    this.#suspects.clear();
    for (const uid of suspects) this.#collect(uid);
    for (const uid of [...this.#terminating]) {
      const ref = this.#objects.get(uid);
      if (ref !== undefined) this.#advance(ref);
    }
  }

  // Deletes an object if it has owners and none of them exists.
  #collect(uid: string): void {
    const ref = this.#objects.get(uid);
    if (ref === undefined || ref.object.metadata.deletionTimestamp !== undefined) return;
    const owners = ref.object.metadata.ownerReferences ?? [];
    if (owners.length > 0 && owners.every((owner) => !this.#objects.has(owner.uid))) this.#delete(ref);
  }

  #advance(ref: Ref): void {
    const { finalizers = [], uid } = ref.object.metadata;
    if (ref.resource === "/namespaces") this.#emptyNamespace(ref);
    if (finalizers.includes(CLEANUP_FINALIZER)) this.#emptyDefinition(ref);
    if (finalizers.includes("orphan")) this.#orphan(ref);
    if (!finalizers.includes("foregroundDeletion")) return;
    const waiting = this.#refs(uid);
    for (const dependent of waiting) if (dependent.object.metadata.deletionTimestamp === undefined) this.#delete(dependent);
    if (this.#refs(uid).length === 0) this.#dropFinalizer(ref, "foregroundDeletion");
  }

  #orphan(ref: Ref): void {
    const { uid } = ref.object.metadata;
    for (const { resource, object } of this.#refs(uid)) {
      const { ownerReferences = [], ...rest } = object.metadata;
      const left = ownerReferences.filter((owner) => owner.uid !== uid);
      this.#backend.store.put(resource, {
        ...object,
        metadata: { ...rest, ...(left.length === 0 ? {} : { ownerReferences: left }) },
      });
    }
    this.#dropFinalizer(ref, "orphan");
  }

  #emptyNamespace(ref: Ref): void {
    const { store } = this.#backend;
    const { name } = ref.object.metadata;
    const content = () => store.resources().flatMap((resource) => this.#inNamespace(resource, name));
    for (const inside of content()) if (inside.object.metadata.deletionTimestamp === undefined) this.#delete(inside);
    if (content().length > 0) return;
    const current = store.get(ref.resource, undefined, name);
    const type = this.#backend.registry.byStorageKey(ref.resource);
    if (current === undefined || type === undefined) return;
    const finalized = { ...current, spec: { ...asObject(current.spec), finalizers: [] } };
    // While metadata.finalizers still hold the namespace, it stays, and is written once without its spec.finalizers.
    if ((current.metadata.finalizers ?? []).length === 0) finishDeletion(this.#backend, type, finalized);
    else if (JSON.stringify(current.spec) !== JSON.stringify(finalized.spec)) store.put(ref.resource, finalized);
  }

  #inNamespace(resource: string, namespace: string): Ref[] {
    const entries = this.#backend.store.entries(resource);
    return entries.filter(([, object]) => object.metadata.namespace === namespace).map(([, object]) => ({ resource, object }));
  }

  #emptyDefinition(ref: Ref): void {
    const spec = asObject(ref.object.spec);
    const resource = storageKey({ group: asString(spec.group), resource: asString(asObject(spec.names).plural) });
    for (const [, object] of this.#backend.store.entries(resource)) {
      if (object.metadata.deletionTimestamp === undefined) this.#delete({ resource, object });
    }
    if (ref.resource === DEFINITIONS && this.#backend.store.entries(resource).length === 0)
      this.#dropFinalizer(ref, CLEANUP_FINALIZER);
  }

  #refs(owner: string): Ref[] {
    return [...(this.#dependents.get(owner) ?? [])].flatMap((uid) => this.#objects.get(uid) ?? []);
  }

  #delete({ resource, object }: Ref): void {
    const type = this.#backend.registry.byStorageKey(resource);
    if (type !== undefined) deleteObject(this.#backend, type, object, BACKGROUND);
  }

  #dropFinalizer({ resource, object }: Ref, finalizer: string): void {
    const { namespace, name } = object.metadata;
    const current = this.#backend.store.get(resource, namespace, name);
    const type = this.#backend.registry.byStorageKey(resource);
    if (current === undefined || type === undefined) return;
    const { finalizers = [], ...rest } = current.metadata;
    const left = finalizers.filter((item) => item !== finalizer);
    if (left.length === finalizers.length) return;
    const stored = this.#backend.store.put(resource, {
      ...current,
      metadata: { ...rest, ...(left.length === 0 ? {} : { finalizers: left }) },
    });
    finishDeletion(this.#backend, type, stored);
  }
}
