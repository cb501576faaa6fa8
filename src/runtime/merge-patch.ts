// JSON merge patches (RFC 7386). Pure. Called by status-writer.ts and reconcilers.
import { isDeepEqual } from "./deep-equal.ts";

/**
 * The patch that turns `before` into `after`: the changed fields, and null for removed ones. Arrays are
 * replaced as a whole. Undefined if both are equal. A null in `after` means absent, since a merge patch
 * cannot express null values.
 */
export function createMergePatch(before: unknown, after: unknown): unknown {
  if (!isRecord(before) || !isRecord(after)) return isDeepEqual(before, after) ? undefined : after;
  const patch: Record<string, unknown> = {};
  for (const key of Object.keys(before)) if (isPresent(before[key]) && !isPresent(after[key])) patch[key] = null;
  for (const [key, value] of Object.entries(after)) {
    if (!isPresent(value)) continue;
    const change = isPresent(before[key]) ? createMergePatch(before[key], value) : value;
    if (change !== undefined) patch[key] = change;
  }
  return Object.keys(patch).length === 0 ? undefined : patch;
}

function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
