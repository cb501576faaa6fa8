// A certificate from files that somebody else renews, as cert-manager does in a mounted Secret. Invariant: a key that does not belong
// to the certificate is never used: the two files may be looked at between two writes.
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { MeshError } from "../../base/errors.ts";
import type { ServingCertificate, TlsPair } from "./serving-certificate.ts";
import { createWatchedCertificate, type WatchedCertificateOptions } from "./watched-certificate.ts";

export type CertificateFilesOptions = Omit<WatchedCertificateOptions, "next" | "caFile"> & {
  readonly files: { readonly cert: string; readonly key: string };
};

export function createCertificateFromFiles({ files, ...options }: CertificateFilesOptions): ServingCertificate {
  return createWatchedCertificate({ ...options, caFile: undefined, next: () => readPair(files.cert, files.key) });
}

/** @throws MeshError `CERTIFICATE_UNREADABLE` also if the two do not belong together */
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
