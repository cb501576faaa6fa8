// JSON Merge Patch (RFC 7386). Pure: it does not change its arguments.
import { isObject, type JsonObject } from "../model/object.ts";

/** The document with the patch merged in: objects merge, null removes, anything else replaces. */
export function applyMergePatch(document: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return structuredClone(patch);
  const merged: JsonObject = isObject(document) ? { ...document } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete merged[key];
    else merged[key] = applyMergePatch(merged[key], value);
  }
  return merged;
}
