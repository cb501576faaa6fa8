// JSON merge patches (RFC 7386) from a before and an after. Pure.
import { isDeepEqual } from "./deep-equal.ts";

/**
 * The patch that turns `before` into `after`: what changed, null for what is gone. Arrays are replaced whole.
 * Undefined if there is nothing to do. (A null in `after` means absent: a merge patch cannot say anything else.)
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
