// What the manager means by an error, for the session's stream and for certificates alike.
import { status } from "@grpc/grpc-js";
import { errorMessage } from "../../base/errors.ts";
import { plainText } from "../../base/plain-text.ts";

const MAX_CHARS = 300;
/** grpc-js adds the time to what it says of a connection; equal reasons are to be equal. */
const TIME = / \(\d{4}-\d{2}-\d{2}T[\d:.]+Z\)/g;

/** The manager answers, and does not serve this pod: by what it knows of it, or since it does not believe who it is. */
export function isRefusal(error: unknown): boolean {
  return isUnbelieved(error) || codeOf(error) === status.PERMISSION_DENIED;
}

/** The manager does not take the proxy for whom it says it is: nothing that soon changes, unless the token is rotated. */
export function isUnbelieved(error: unknown): boolean {
  return codeOf(error) === status.UNAUTHENTICATED;
}

/** The error in words for a log line and for /readyz: one line, bounded, without what else the error carries. */
export function reasonOf(error: unknown, manager: string): string {
  const text = plainText(errorMessage(error).replaceAll(TIME, ""), MAX_CHARS);
  if (isRefusal(error)) return `the manager at ${manager} refuses this pod: ${text}`;
  return codeOf(error) === status.UNAVAILABLE ? `the manager at ${manager} is not available: ${text}` : text;
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
