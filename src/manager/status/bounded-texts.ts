// Every text of a status, cut to what the CRD's schema has room for. Pure. Invariant: whatever pods, users and the API server have said, the
// API server does not refuse the status for the length of a text: it would be written again without end. Called by app-status.ts.
import type { AppStatus } from "../../api/app-status.ts";
import { plainText } from "../../base/plain-text.ts";

/** A quarter of what the schema allows: enough for ten problems, and a status has six conditions. */
const MAX_MESSAGE_CHARS = 8_192;
/** As in the schema. */
const MAX_RESTART_CHARS = 1_024;

/** The status with bounded texts. */
export function withBoundedTexts(status: AppStatus): AppStatus {
  const { conditions, restart } = status;
  return {
    ...status,
    ...(conditions && { conditions: conditions.map((each) => bounded(each, MAX_MESSAGE_CHARS)) }),
    ...(restart && { restart: bounded(restart, MAX_RESTART_CHARS) }),
  };
}

function bounded<T extends { readonly message?: string | undefined }>(each: T, maxChars: number): T {
  return each.message === undefined ? each : { ...each, message: plainText(each.message, maxChars) };
}
