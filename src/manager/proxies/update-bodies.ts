// The bodies of updates, each encoded once for all proxies that get it. Invariant: the bytes depend on type and digests alone, which the
// manager computes itself. Used by the proxy registry.
import type { ResourceType, Versioned } from "../../wire/resource-type.ts";
import { createByteCache } from "./byte-cache.ts";

export interface UpdateBodies {
  whole(type: ResourceType<Versioned>, resource: Versioned): Uint8Array;
  /** Undefined if the whole is to be sent. */
  delta(type: ResourceType<Versioned>, base: Versioned, next: Versioned): Uint8Array | undefined;
}

// Some dozens of the largest ones: enough for all that is sent at one time.
const MAX_CACHED_BYTES = 32 * 1024 * 1024;
// An entry whose body is undefined takes memory as well.
const ENTRY_BYTES = 128;

export function createUpdateBodies(): UpdateBodies {
  const bodies = createByteCache<{ readonly body: Uint8Array | undefined }>(MAX_CACHED_BYTES);
  const once = <T extends Uint8Array | undefined>(key: string, encode: () => T): T => {
    let entry = bodies.get(key);
    if (entry === undefined) {
      entry = { body: encode() };
      bodies.set(key, entry, ENTRY_BYTES + (entry.body?.length ?? 0));
    }
    return entry.body as T;
  };
  return {
    whole: (type, resource) => once(`${type.name} ${resource.digest}`, () => type.encode(resource)),
    delta: (type, base, next) => once(`${type.name} ${base.digest} ${next.digest}`, () => type.delta?.encode(base, next)),
  };
}
