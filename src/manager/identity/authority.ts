// What signs in this replica and what everybody trusts, wherever it is kept. Sources are managed-ca.ts and provided-ca.ts; read by
// mesh-identity.ts and certifier.ts. Pure.
import { X509Certificate } from "node:crypto";
import { type KeyCertificate, type LeafOptions, signServerCertificate } from "../../base/certificates.ts";
import { splitPem } from "../../base/pem.ts";

export interface Authority {
  readonly signer: KeyCertificate;
  /** PEM: what stands behind each leaf, so that those who loaded an older CA only can follow. */
  readonly chainPem: string;
  /** PEM: all CAs that are trusted now, those that sign soon included. */
  readonly trustPem: string;
  /** The CA that is trusted already and will sign, if there is one. */
  readonly nextPem?: string;
  /** When it will, in milliseconds since the epoch. */
  readonly nextSignsAtMs?: number;
}

export interface AuthoritySource {
  /**
   * Reads it anew, and as the leader does what is due. Called by mesh-identity.ts alone, never twice at a time.
   * @throws MeshError `CERTIFICATE_INVALID` if it cannot be used, `CA_MISSING` if it is not there yet, or what the client throws
   */
  refresh(signal: AbortSignal): Promise<Authority>;
}

const DAY_MS = 86_400_000;

/** A leaf with its chain, PEM. It does not outlive the CA. */
export function signLeaf(
  { signer, chainPem }: Authority,
  key: Parameters<typeof signServerCertificate>[1],
  { lifetimeMs, ...names }: Omit<LeafOptions, "days"> & { readonly lifetimeMs: number },
): string {
  const untilMs = Math.min(names.now + lifetimeMs, expiryOf(signer.certPem));
  return signServerCertificate(signer, key, { ...names, days: Math.max(0, untilMs - names.now) / DAY_MS }) + chainPem;
}

/** When the first certificate of a bundle expires, in milliseconds since the epoch. */
export function expiryOf(pem: string): number {
  return new X509Certificate(splitPem(pem)[0] ?? "").validToDate.getTime();
}
