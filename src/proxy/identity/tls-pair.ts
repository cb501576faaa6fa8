// A certificate with its key. A file of its own, since each import costs memory in the thread for webhooks.
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { MeshError } from "../../base/errors.ts";

/** As node:tls takes them; `cert` may have its chain behind it. */
export interface TlsPair {
  readonly cert: string;
  readonly key: string;
}

/**
 * Somebody may be replacing the two files, so a pair that does not match is an error.
 * @throws MeshError `CERTIFICATE_UNREADABLE`
 */
export async function readPair(certFile: string, keyFile: string): Promise<TlsPair> {
  try {
    const [cert, key] = await Promise.all([readFile(certFile, "utf8"), readFile(keyFile, "utf8")]);
    if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) {
      throw new Error("the key does not belong to the certificate");
    }
    return { cert, key };
  } catch (cause) {
    throw new MeshError("CERTIFICATE_UNREADABLE", `reading the serving certificate ${certFile} and its key`, { cause });
  }
}
