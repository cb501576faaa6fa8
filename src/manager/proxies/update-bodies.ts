// The bodies of updates, each encoded once for all proxies that get it. Invariant: the bytes depend only on the type and the digests,
// which the manager computes itself. Used by the proxy registry.
import type { ResourceType, Versioned } from "../../wire/resource-type.ts";

export interface UpdateBodies {
  whole(type: ResourceType<Versioned>, resource: Versioned): Uint8Array;
  /** Undefined if the whole resource has to be sent. */
  delta(type: ResourceType<Versioned>, base: Versioned, next: Versioned): Uint8Array | undefined;
}

// Dozens of the largest bodies: enough for all updates that are sent at the same time.
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

/** Removes the least recently used entries when their total exceeds a number of bytes. */
interface ByteCache<T> {
  get(key: string): T | undefined;
  set(key: string, value: T, bytes: number): void;
}

function createByteCache<T>(maxBytes: number): ByteCache<T> {
  const entries = new Map<string, { readonly value: T; readonly bytes: number }>();
  let total = 0;
  const drop = (key: string) => {
    total -= entries.get(key)?.bytes ?? 0;
    entries.delete(key);
  };
  return {
    get(key) {
      const entry = entries.get(key);
      if (entry === undefined) return undefined;
      entries.delete(key); // moves the entry to the end: it is the most recently used
      entries.set(key, entry);
      return entry.value;
    },
    set(key, value, bytes) {
      drop(key);
      entries.set(key, { value, bytes });
      total += bytes;
      for (const oldest of entries.keys()) {
        if (total <= maxBytes || entries.size === 1) return;
        drop(oldest);
      }
    },
  };
}
