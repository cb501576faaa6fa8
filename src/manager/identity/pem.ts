// PEM bundles: taking them apart, putting them together, and reading one certificate with its key. Pure. Invariant: an error names
// the place that the text came from, and never shows the text.
import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import type { KeyCertificate } from "../../base/certificates.ts";
import { MeshError } from "../../base/errors.ts";

const BLOCK = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/** The certificates of a bundle, each with a line end behind it, without what stands between them. */
export function splitPem(bundle: string): string[] {
  return (bundle.match(BLOCK) ?? []).map((block) => `${block}\n`);
}

/** One bundle of several, each certificate once. */
export function joinPem(...bundles: readonly string[]): string {
  return [...new Set(bundles.flatMap(splitPem))].join("");
}

/**
 * Checks that every block is a certificate, and that there is one at least.
 * @param where for messages: "Secret a/b, key tls.crt"
 * @throws MeshError `CA_INVALID`
 */
export function readCertificates(bundle: string, where: string): X509Certificate[] {
  const blocks = splitPem(bundle);
  if (blocks.length === 0) throw new MeshError("CA_INVALID", `reading ${where}: no PEM certificate`);
  return blocks.map((block) => {
    try {
      return new X509Certificate(block);
    } catch (cause) {
      throw new MeshError("CA_INVALID", `reading ${where}: not a certificate`, { cause });
    }
  });
}

/**
 * Checks that the first certificate of a bundle is that of a CA, and that the key is its own.
 * @throws MeshError `CA_INVALID`
 */
export function readCa(pems: KeyCertificate, whereCert: string, whereKey: string): X509Certificate {
  const [certificate] = readCertificates(pems.certPem, whereCert);
  if (certificate === undefined) throw new MeshError("CA_INVALID", `reading ${whereCert}: no PEM certificate`);
  if (!certificate.ca) throw new MeshError("CA_INVALID", `reading ${whereCert}: not the certificate of a CA`);
  if (!certificate.checkPrivateKey(readKey(pems.keyPem, whereKey))) {
    throw new MeshError("CA_INVALID", `reading ${whereKey}: not the key of the certificate beside it`);
  }
  return certificate;
}

function readKey(keyPem: string, where: string): KeyObject {
  try {
    return createPrivateKey(keyPem);
  } catch {
    // The cause is left out: what OpenSSL says may repeat what it was given.
    throw new MeshError("CA_INVALID", `reading ${where}: not a PEM private key`);
  }
}
