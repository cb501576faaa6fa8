// Reads certificates from PEM text of any origin: the network, a Secret or a file. Invariant: the size is
// bounded; an error names the place of the text and never shows the text.
import { X509Certificate } from "node:crypto";
import { MeshError } from "./errors.ts";

/** A chain or a CA bundle has few certificates of less than 1 KB each. */
export const MAX_PEM_CHARS = 64 * 1024;

const BLOCK = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/** Each certificate with a line end, without the text between them. */
export function splitPem(bundle: string): string[] {
  return (bundle.match(BLOCK) ?? []).map((block) => `${block}\n`);
}

/** Joins bundles, with each certificate once. */
export function joinPem(...bundles: readonly string[]): string {
  return [...new Set(bundles.flatMap(splitPem))].join("");
}

/**
 * Checks that every block is a certificate, and that there is at least one.
 * @param where for messages: "Secret a/b, key tls.crt"
 * @throws MeshError `CERTIFICATE_INVALID`, also if the text is longer than MAX_PEM_CHARS
 */
export function readCertificates(bundle: string, where: string): [X509Certificate, ...X509Certificate[]] {
  const invalid = (problem: string, cause?: unknown) =>
    new MeshError("CERTIFICATE_INVALID", `reading ${where}: ${problem}`, { cause });
  if (bundle.length > MAX_PEM_CHARS) throw invalid(`over ${MAX_PEM_CHARS} characters`);
  const [first, ...others] = splitPem(bundle).map((block) => {
    try {
      return new X509Certificate(block);
    } catch (cause) {
      throw invalid("not a certificate", cause);
    }
  });
  if (first === undefined) throw invalid("no PEM certificate");
  return [first, ...others];
}

export interface PodName {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/**
 * The name of a pod in the certificates of the mesh: the manager signs it, and proxies check it on
 * connections to each other. It has the form of a SPIFFE ID. With the uid it names one pod only, also if a
 * later pod has the same name.
 */
export function podUri({ namespace, name, uid }: PodName): string {
  return `spiffe://ctrlmesh/ns/${encodeURIComponent(namespace)}/pod/${encodeURIComponent(name)}/${encodeURIComponent(uid)}`;
}
