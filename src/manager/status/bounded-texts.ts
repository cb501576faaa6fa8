// Cuts every text of a status to the length that the CRD's schema allows. Pure. Invariant: texts from pods, users and the API
// server never make the status too long. Otherwise the API server would refuse it, and the manager would write it again without
// end. Called by app-status.ts.
import type { AppStatus } from "../../api/app-status.ts";
import { plainText } from "../../base/plain-text.ts";

/** A quarter of what the schema allows: enough for ten problems, and a status has six conditions. */
const MAX_MESSAGE_CHARS = 8_192;
/** The limit in the schema. */
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
