// What an error of a call to the manager means, and its text for users. The session and mesh-certificate.ts
// use it.
import { status } from "@grpc/grpc-js";
import { errorMessage } from "../../base/errors.ts";
import { plainText } from "../../base/plain-text.ts";

const MAX_CHARS = 300;
/** grpc-js adds the time to its text about a connection. Without the time, equal reasons have equal texts. */
const TIME = / \(\d{4}-\d{2}-\d{2}T[\d:.]+Z\)/g;

/** The manager answered and does not serve this pod. */
export function isRefusal(error: unknown): boolean {
  return isUnbelieved(error) || codeOf(error) === status.PERMISSION_DENIED;
}

/** The manager does not accept the pod's token. That lasts, unless the token is rotated. */
export function isUnbelieved(error: unknown): boolean {
  return codeOf(error) === status.UNAUTHENTICATED;
}

/** The error as one bounded line, for the log and for /readyz. Nothing but its message goes in. */
export function reasonOf(error: unknown, manager: string): string {
  const text = plainText(errorMessage(error).replaceAll(TIME, ""), MAX_CHARS);
  if (isRefusal(error)) return `the manager at ${manager} refuses this pod: ${text}`;
  return codeOf(error) === status.UNAVAILABLE ? `the manager at ${manager} is not available: ${text}` : text;
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
