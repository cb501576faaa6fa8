// When the certificates and the token end by which the manager and the proxies reach a cluster. Pure. Invariant: the text may be of a tenant
// and the certificate of a hostile server, so what has no date that can be written is left out.
import type { X509Certificate } from "node:crypto";
import { bearerClaims } from "../../base/bearer-claims.ts";
import { readCertificates } from "../../base/pem.ts";
import type { TenantConnection } from "./read-kubeconfig.ts";

export const CREDENTIALS = [
  "ServerCertificate",
  "CertificateAuthority",
  "KubeconfigCertificateAuthority",
  "KubeconfigClientCertificate",
  "KubeconfigToken",
] as const;

export interface CredentialEnd {
  readonly of: (typeof CREDENTIALS)[number];
  /** Wall time. Undefined: it has ended, and nobody knows when. */
  readonly endsMs: number | undefined;
  /** Undefined if it is not known. */
  readonly beginsMs?: number | undefined;
}

type Credentials = Pick<TenantConnection, "caPem" | "clientCert" | "token">;

/** The last second that RFC 3339 and X.509 can write. */
const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59);

/** @param server the certificate that the server showed last */
export function endsOfConnection({ caPem, clientCert, token }: Credentials, server?: X509Certificate): CredentialEnd[] {
  return [
    ...(server === undefined ? [] : endOf("ServerCertificate", server)),
    ...endOfAuthorities("KubeconfigCertificateAuthority", caPem, server),
    ...certificatesOf(clientCert)
      .slice(0, 1)
      .flatMap((certificate) => endOf("KubeconfigClientCertificate", certificate)),
    ...tokenEnd(token()),
  ];
}

/**
 * Of several CAs, one has signed the server's certificate, and others may be there for a rotation. So those that have signed it count, or
 * all if none has. Of these, the one that ends last decides.
 */
export function endOfAuthorities(of: CredentialEnd["of"], pem: string | undefined, signed?: X509Certificate): CredentialEnd[] {
  const all = certificatesOf(pem);
  const signers = all.filter((ca) => signed?.checkIssued(ca));
  const ends = (signers.length > 0 ? signers : all).flatMap((ca) => endOf(of, ca));
  return ends.sort((a, b) => (b.endsMs ?? 0) - (a.endsMs ?? 0)).slice(0, 1);
}

/** A token that is not a JSON Web Token ends when its issuer says so. */
function tokenEnd(token: string): CredentialEnd[] {
  const claims = bearerClaims(`Bearer ${token}`);
  const { exp, iat } = (typeof claims === "object" && claims !== null ? claims : {}) as {
    readonly exp?: unknown;
    readonly iat?: unknown;
  };
  if (typeof exp !== "number") return [];
  return dated("KubeconfigToken", exp * 1_000, typeof iat === "number" ? iat * 1_000 : undefined);
}

function endOf(of: CredentialEnd["of"], { validFromDate, validToDate }: X509Certificate): CredentialEnd[] {
  return dated(of, validToDate.getTime(), validFromDate.getTime());
}

function dated(of: CredentialEnd["of"], endsMs: number, beginsMs: number | undefined): CredentialEnd[] {
  return endsMs >= 0 && endsMs <= LAST_MS ? [{ of, endsMs: Math.floor(endsMs / 1_000) * 1_000, beginsMs }] : [];
}

function certificatesOf(pem: string | undefined): readonly X509Certificate[] {
  if (pem === undefined || pem === "") return [];
  try {
    return readCertificates(pem, "a bundle");
  } catch {
    return [];
  }
}
