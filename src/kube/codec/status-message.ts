// The one place that knows how API servers name an object in an error text: in double quotes, as in `leases "x" not found`.
import type { Rename } from "./rename.ts";

/** The message with the quoted name replaced. */
export function renameInMessage(message: string, { from, to, note = "" }: Rename): string {
  return message.replaceAll(`"${from}"`, () => `"${to}"${note}`);
}
