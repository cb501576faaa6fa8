// What one pod has that another has not, as a strategic merge patch: items of lists are known by their names. Pure.
import { isDeepStrictEqual } from "node:util";

/** The keys by which Kubernetes merges the lists of a pod. */
const MERGE_KEYS = ["mountPath", "name", "ip"];

type Fields = Readonly<Record<string, unknown>>;

/** Undefined: nothing. What only the first one has is left out. */
export function addedParts(before: unknown, after: unknown): unknown {
  if (isDeepStrictEqual(before, after)) return undefined;
  if (Array.isArray(before) && Array.isArray(after)) return addedItems(before, after);
  if (!isFields(before) || !isFields(after)) return after;
  const parts = Object.entries(after).flatMap(([key, value]): [string, unknown][] => {
    const part = addedParts(before[key], value);
    return part === undefined ? [] : [[key, part]];
  });
  return parts.length === 0 ? undefined : Object.fromEntries(parts);
}

function addedItems(before: readonly unknown[], after: readonly unknown[]): unknown {
  const known = new Map(before.map((item) => [mergeKeyOf(item)?.join("="), item]));
  const parts: unknown[] = [];
  for (const item of after) {
    const key = mergeKeyOf(item);
    if (key === undefined) return after;
    const part = addedParts(known.get(key.join("=")), item);
    if (isFields(part)) parts.push({ [key[0]]: key[1], ...part });
  }
  return parts.length === 0 ? undefined : parts;
}

function mergeKeyOf(item: unknown): readonly [string, string] | undefined {
  if (!isFields(item)) return undefined;
  const key = MERGE_KEYS.find((each) => typeof item[each] === "string");
  return key === undefined ? undefined : [key, String(item[key])];
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
