// How much one namespace may ask of the manager, which compiles and keeps all objects of the cluster. Pure.
// Invariant: the oldest objects count first, so a new object takes nothing from those that are in force.
import { remember } from "../../base/remember.ts";
import type { KubeObject } from "../../kube/types.ts";

interface NamespaceShare {
  readonly count: number;
  readonly bytes: number;
}

const MIB = 1024 * 1024;
/** The webhook configurations have places for 64 apps. A few objects of etcd's largest size (1.5 MiB) fit. */
export const APPS_SHARE: NamespaceShare = { count: 64, bytes: 4 * MIB };
export const POLICIES_SHARE: NamespaceShare = { count: 256, bytes: 4 * MIB };

/** Why an item has no place, by item. @param objectsOf the objects of an item; the first gives its age */
export function beyondShare<T>(
  items: readonly T[],
  objectsOf: (item: T) => readonly KubeObject[],
  { count, bytes }: NamespaceShare,
  noun: string,
): ReadonlyMap<T, string> {
  const sized = items.map((item) => ({ item, size: sizeOf(objectsOf(item)), age: ageOf(objectsOf(item)) }));
  const total = sized.reduce((sum, { size }) => sum + size, 0);
  if (items.length <= count && total <= bytes) return new Map();
  const share = `${count} ${noun}, and ${bytes / MIB} MiB of their specs`;
  const why = `the manager accepts at most ${share} in a namespace, the oldest first; delete some, make specs smaller, or use another namespace`;
  const beyond = new Map<T, string>();
  const taken = { count: 0, bytes: 0 };
  for (const { item, size } of sized.toSorted((a, b) => (a.age < b.age ? -1 : 1))) {
    if (taken.count + 1 > count || taken.bytes + size > bytes) {
      beyond.set(item, why);
      continue;
    }
    taken.count++;
    taken.bytes += size;
  }
  return beyond;
}

const specSize = remember(({ spec = null }: KubeObject & { readonly spec?: unknown }) => Buffer.byteLength(JSON.stringify(spec)));

function sizeOf(objects: readonly KubeObject[]): number {
  return objects.reduce((sum, object) => sum + specSize(object), 0);
}

function ageOf([first]: readonly KubeObject[]): string {
  return `${first?.metadata.creationTimestamp ?? ""} ${first?.metadata.name ?? ""}`;
}
