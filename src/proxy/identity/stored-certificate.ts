// The issued certificate and its key in the data folder, so that a restarted proxy serves at once while the
// manager is away. Invariants: both are in one file, so that no key lies beside another key's certificate;
// only the proxy can read the file. In a pod the folder is an emptyDir in memory, so that the key is on no
// disk. mesh-certificate.ts calls it.
import { z } from "zod";
import { isMissing, readBounded, replaceFile } from "../../base/durable-file.ts";
import { errorMessage } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";

const schema = z.object({ key: z.string(), chain: z.string(), trust: z.string() });

/**
 * All PEM: the key, the chain with the certificate first, and the CAs that the manager trusted when it issued
 * it.
 */
export type StoredCertificate = Readonly<z.output<typeof schema>>;

/** Name of the file in the data folder. */
export const CERTIFICATE_FILE_NAME = "serving-certificate.json";
const MAX_BYTES = 256 * 1024;

/** Undefined if there is none or it cannot be read, which is logged. */
export async function loadCertificate(path: string, log: Logger): Promise<StoredCertificate | undefined> {
  try {
    return schema.parse(JSON.parse(await readBounded(path, MAX_BYTES)));
  } catch (error) {
    // A parser's message may quote what it was given.
    const reason = error instanceof SyntaxError || error instanceof z.ZodError ? "it is not whole" : errorMessage(error);
    if (!isMissing(error)) log.warn({ path, reason }, "the stored certificate is not usable; asking for a new one");
    return undefined;
  }
}

/** Without a file a restart has to wait for the manager; nothing else is lost. */
export async function storeCertificate(path: string, stored: StoredCertificate, log: Logger): Promise<void> {
  try {
    await replaceFile(path, JSON.stringify(stored));
  } catch (error) {
    log.warn(
      { path, reason: errorMessage(error) },
      "the certificate could not be stored; a restart will have to wait for the manager",
    );
  }
}
