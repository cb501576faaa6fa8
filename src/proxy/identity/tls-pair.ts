// A certificate with its key, read from two files. Invariant: the two belong together. In a file of its own,
// since the thread of the operator's webhooks loads it, and every import costs memory there.
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { MeshError } from "../../base/errors.ts";

/** A certificate, with the chain to its CA behind it, and its key, as node:tls takes them. */
export interface TlsPair {
  readonly cert: string;
  readonly key: string;
}

/**
 * Reads a certificate and its key. Somebody may be replacing the two files, so that a pair that does not
 * match is an error.
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
