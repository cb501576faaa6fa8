// The issued certificate and its key in the state folder, so that a restarted proxy serves immediately while
// the manager is away. Invariants: both are in one file, so that no key lies beside another key's
// certificate; only the proxy can read it. In a pod the folder is an emptyDir in memory, so that the key is on
// no disk.
import { z } from "zod";
import { errorMessage } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import type { Slot } from "../state/state-folder.ts";

const schema = z.object({ key: z.string(), chain: z.string(), trust: z.string() });

/** PEM: the key, the chain with the certificate first, and the manager's CAs when it issued them. */
export type StoredCertificate = Readonly<z.output<typeof schema>>;

/** Undefined if there is none or it cannot be read, which is logged. */
export async function loadCertificate(slot: Slot, log: Logger): Promise<StoredCertificate | undefined> {
  try {
    const text = await slot.read();
    return text === undefined ? undefined : schema.parse(JSON.parse(text));
  } catch (error) {
    // A parser's message may quote what it was given.
    const reason = error instanceof SyntaxError || error instanceof z.ZodError ? "it is not whole" : errorMessage(error);
    log.warn({ path: slot.path, reason }, "the stored certificate is not usable; asking for a new one");
    return undefined;
  }
}

export async function storeCertificate(slot: Slot, stored: StoredCertificate): Promise<void> {
  await slot.save(() => ({ text: () => JSON.stringify(stored), onFullDisk: "keep" }));
}
