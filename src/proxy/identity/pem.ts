// Certificates out of PEM text, bounded: it comes over the wire, or from a file that others write. Pure.
import { X509Certificate } from "node:crypto";
import { MeshError } from "../../base/errors.ts";

/** A chain or a bundle of CAs has a few certificates of less than 1 KB each. */
export const MAX_PEM_CHARS = 64 * 1024;

const BLOCK = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/** @throws MeshError `BAD_PEM` if there is none, if one cannot be read, or if the text is too long */
export function readCertificates(pem: string): readonly X509Certificate[] {
  if (pem.length > MAX_PEM_CHARS) throw new MeshError("BAD_PEM", `reading certificates: over ${MAX_PEM_CHARS} characters`);
  const blocks = pem.match(BLOCK) ?? [];
  if (blocks.length === 0) throw new MeshError("BAD_PEM", "reading certificates: no PEM certificate in it");
  try {
    return blocks.map((block) => new X509Certificate(block));
  } catch (cause) {
    throw new MeshError("BAD_PEM", "reading certificates: one of them is none", { cause });
  }
}

/** The same for the same set of certificates, in whatever order. */
export function setOf(certificates: readonly X509Certificate[]): string {
  return [...new Set(certificates.map(({ fingerprint256 }) => fingerprint256))].sort().join();
}
