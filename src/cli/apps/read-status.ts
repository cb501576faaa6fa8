// The status of an app, which another version may have written. Invariant: a field that cannot be read is named,
// and hides nothing else.
import { type AppStatus, appStatusSchema } from "../../api/app-status.ts";

export function readStatus(status: unknown): { readonly status: AppStatus | undefined; readonly unread: readonly string[] } {
  if (status === undefined) return { status: undefined, unread: [] };
  if (typeof status !== "object" || status === null) return { status: undefined, unread: ["status"] };
  const fields: Readonly<Record<string, unknown>> = { ...status };
  const read: Record<string, unknown> = {};
  const unread: string[] = [];
  for (const [name, schema] of Object.entries(appStatusSchema.shape)) {
    if (fields[name] === undefined) continue;
    const { data, success } = schema.safeParse(fields[name]);
    if (success) read[name] = data;
    else unread.push(name);
  }
  return { status: read as AppStatus, unread };
}
