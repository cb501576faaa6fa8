// The CA that signs in this replica and the CAs that are trusted, from managed-ca.ts or provided-ca.ts. Pure.
import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { type KeyCertificate, type LeafOptions, signServerCertificate } from "../../base/certificates.ts";
import { MeshError } from "../../base/errors.ts";
import { readCertificates, splitPem } from "../../base/pem.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import { canSign } from "../../base/x509.ts";

export interface Authority {
  readonly signer: KeyCertificate;
  /** PEM: the certificates that follow each leaf and lead to older CAs. */
  readonly chainPem: string;
  /** PEM: all trusted CAs, including one that will sign. */
  readonly trustPem: string;
  readonly nextPem?: string;
  readonly nextSignsAtMs?: number;
}

export interface AuthorityOptions extends Pick<ProcessContext, "clock" | "log"> {
  readonly namespace: string;
  readonly name: string;
  /** How long a new CA is trusted before it signs. */
  readonly settleMs: number;
}

export interface AuthoritySource {
  /**
   * Reads the CA again; the leader also takes the next step of a rotation. Never called twice at a time.
   * @throws MeshError `CERTIFICATE_INVALID`, or `CA_MISSING` if there is none yet, or the client's error
   */
  refresh(signal: AbortSignal): Promise<Authority>;
}

const DAY_MS = 86_400_000;

/** PEM: the leaf with its chain. The leaf does not outlive the CA. */
export function signLeaf(
  { signer, chainPem }: Authority,
  key: Parameters<typeof signServerCertificate>[1],
  { lifetimeMs, ...names }: Omit<LeafOptions, "days"> & { readonly lifetimeMs: number },
): string {
  const untilMs = Math.min(names.now + lifetimeMs, expiryOf(signer.certPem));
  return signServerCertificate(signer, key, { ...names, days: Math.max(0, untilMs - names.now) / DAY_MS }) + chainPem;
}

export function expiryOf(pem: string): number {
  return new X509Certificate(splitPem(pem)[0] ?? "").validToDate.getTime();
}

/** @throws MeshError `CERTIFICATE_INVALID` if the pair cannot sign leaves; it never shows the text */
export function checkCa(pems: KeyCertificate, whereCert: string, whereKey: string): void {
  const [certificate] = readCertificates(pems.certPem, whereCert);
  if (!certificate.ca) throw new MeshError("CERTIFICATE_INVALID", `reading ${whereCert}: not the certificate of a CA`);
  const key = readKey(pems.keyPem, whereKey);
  if (!canSign(key)) {
    const what = `a key of type ${key.asymmetricKeyType} cannot be used, only EC, RSA and Ed25519`;
    throw new MeshError("CERTIFICATE_INVALID", `reading ${whereKey}: ${what}`);
  }
  if (!certificate.checkPrivateKey(key)) {
    throw new MeshError("CERTIFICATE_INVALID", `reading ${whereKey}: not the key of the certificate beside it`);
  }
}

function readKey(keyPem: string, where: string): KeyObject {
  try {
    return createPrivateKey(keyPem);
  } catch {
    // Without the cause, since OpenSSL may repeat its input.
    throw new MeshError("CERTIFICATE_INVALID", `reading ${where}: not a PEM private key`);
  }
}
