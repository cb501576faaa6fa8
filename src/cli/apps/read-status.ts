// The status of an app, which another version may have written. Invariant: a field that cannot be read is named,
// and hides nothing else.
import type { z } from "zod";
import { type AppStatus, appStatusSchema } from "../../api/app-status.ts";

export interface ReadStatus<T> {
  readonly status: T | undefined;
  /** The fields that cannot be read. */
  readonly unread: readonly string[];
}

export function readStatus(status: unknown): ReadStatus<AppStatus> {
  return readFields(appStatusSchema.shape, status) as ReadStatus<AppStatus>;
}

/** @param shape the fields that are read */
export function readFields(shape: Readonly<Record<string, z.ZodType>>, status: unknown): ReadStatus<object> {
  if (status === undefined) return { status: undefined, unread: [] };
  if (typeof status !== "object" || status === null) return { status: undefined, unread: ["status"] };
  const fields: Readonly<Record<string, unknown>> = { ...status };
  const read: Record<string, unknown> = {};
  const unread: string[] = [];
  for (const [name, schema] of Object.entries(shape)) {
    if (fields[name] === undefined) continue;
    const { data, success } = schema.safeParse(fields[name]);
    if (success) read[name] = data;
    else unread.push(name);
  }
  return { status: read, unread };
}
