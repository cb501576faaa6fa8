// X.509 certificates for the mesh's own endpoints: CAs, and server certificates that they sign. Invariant:
// new keys are ECDSA P-256; input and output are PEM.
import { createPrivateKey, generateKeyPairSync, type KeyObject, X509Certificate } from "node:crypto";
import { MeshError } from "./errors.ts";
import {
  authorityKeyId,
  buildCertificate,
  caExtensions,
  distinguishedName,
  keyId,
  keyIdOf,
  serverExtensions,
  subjectOf,
} from "./x509.ts";

/** A certificate with its private key, both as PEM (the key in PKCS #8). */
export interface KeyCertificate {
  readonly certPem: string;
  readonly keyPem: string;
}

/** `now` is wall time in milliseconds. */
export interface CaOptions {
  readonly commonName: string;
  readonly now: number;
  /** Default 3650. */
  readonly days?: number;
  /** How many CAs may be between this CA and a leaf; default 0. Cross-signing a successor needs more. */
  readonly maxIntermediates?: number;
}

export interface LeafOptions {
  /** Default: the first DNS name or address. */
  readonly commonName?: string;
  readonly dnsNames?: readonly string[];
  readonly ipAddresses?: readonly string[];
  /** A URI by which servers identify the holder. With it, the certificate is also valid for clients. */
  readonly clientName?: string;
  readonly now: number;
  /** Default 365. */
  readonly days?: number;
}

const DAY_MS = 86_400_000;
/** How long before its creation a certificate becomes valid, since clocks differ. */
export const CLOCK_SKEW_MS = 5 * 60_000;

export function createCa({ commonName, now, days = 3650, maxIntermediates = 0 }: CaOptions): KeyCertificate {
  const key = newKey();
  const name = distinguishedName(commonName);
  const extensions = caExtensions(keyId(key), maxIntermediates);
  const certPem = buildCertificate({ issuer: name, subject: name, key, signer: key, ...validity(now, days), extensions });
  return { certPem, keyPem: pemOfKey(key) };
}

/**
 * A certificate for another CA's name and key, signed by `ca`: a client that trusts only `ca` can then verify
 * the other CA's leaves while both are valid. Both must have been created with `maxIntermediates`.
 */
export function crossSignCa(ca: KeyCertificate, otherPem: string, maxIntermediates: number): string {
  const [ownCert, otherCert] = [new X509Certificate(ca.certPem), new X509Certificate(otherPem)];
  return buildCertificate({
    issuer: subjectOf(ownCert),
    subject: subjectOf(otherCert),
    key: otherCert.publicKey,
    signer: createPrivateKey(ca.keyPem),
    from: Math.max(ownCert.validFromDate.getTime(), otherCert.validFromDate.getTime()),
    until: Math.min(ownCert.validToDate.getTime(), otherCert.validToDate.getTime()),
    extensions: [...caExtensions(keyIdOf(otherCert), maxIntermediates), authorityKeyId(ownCert)],
  });
}

/**
 * A key and a server certificate for it, signed by `ca`.
 * @throws MeshError `BAD_CERTIFICATE` without any name, or for an invalid IP address
 */
export function issueServerCertificate(ca: KeyCertificate, options: LeafOptions): KeyCertificate {
  const key = newKey();
  return { certPem: signServerCertificate(ca, key, options), keyPem: pemOfKey(key) };
}

/**
 * @param ca made by {@link createCa}, or by another tool with an RSA, EC or Ed25519 key
 * @param key the certificate is for its public half
 * @throws MeshError `BAD_CERTIFICATE` as {@link issueServerCertificate}
 */
export function signServerCertificate(ca: KeyCertificate, key: KeyObject, options: LeafOptions): string {
  const { dnsNames = [], ipAddresses = [], now, days = 365 } = options;
  const commonName = options.commonName ?? dnsNames[0] ?? ipAddresses[0];
  if (commonName === undefined || dnsNames.length + ipAddresses.length === 0) {
    throw new MeshError("BAD_CERTIFICATE", "issuing a server certificate: neither a DNS name nor an IP address");
  }
  const issuer = new X509Certificate(ca.certPem);
  const extensions = serverExtensions(issuer, key, dnsNames, ipAddresses, options.clientName);
  const subject = distinguishedName(commonName);
  const signer = createPrivateKey(ca.keyPem);
  return buildCertificate({ issuer: subjectOf(issuer), subject, key, signer, ...validity(now, days), extensions });
}

function validity(now: number, days: number) {
  return { from: now - CLOCK_SKEW_MS, until: now + days * DAY_MS };
}

function newKey(): KeyObject {
  return generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
}

function pemOfKey(key: KeyObject): string {
  return key.export({ type: "pkcs8", format: "pem" }).toString();
}
