// The texts that a rename changes: the name itself, and the quoted name in the message of a Status.

/** `metadata.name` equal to `from` becomes `to`. */
export interface Rename {
  readonly from: string;
  readonly to: string;
  /** Added after the quoted name in the message of a Status. */
  readonly note?: string;
}

/** The name, or its replacement. */
export function renameName(name: string, { from, to }: Rename): string {
  return name === from ? to : name;
}

/** The message with the quoted name replaced. API servers quote names, as in `leases "x" not found`. */
export function renameInMessage(message: string, { from, to, note = "" }: Rename): string {
  return message.replaceAll(`"${from}"`, () => `"${to}"${note}`);
}
