// X.509 certificates for the mesh's own endpoints: one certificate authority, and leaves that it signs. ECDSA P-256, PEM in
// and out, time as a parameter. Used by localkube, by the manager (its CA and webhook certificate) and by the proxy.
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from "node:crypto";
import { isIPv4, isIPv6 } from "node:net";
import { bitString, boolean, integer, octetString, oid, readElements, sequence, TAG, time, tlv } from "./der.ts";
import { MeshError } from "./errors.ts";

/** A certificate with its private key, both PEM (the key as PKCS #8). */
export interface KeyCertificate {
  readonly certPem: string;
  readonly keyPem: string;
}

export interface CaOptions {
  readonly commonName: string;
  /** Wall time in milliseconds since the epoch. */
  readonly now: number;
  /** Default 3650. */
  readonly days?: number;
}

export interface LeafOptions {
  /** Default: the first DNS name or address. */
  readonly commonName?: string;
  readonly dnsNames?: readonly string[];
  readonly ipAddresses?: readonly string[];
  /** Wall time in milliseconds since the epoch. */
  readonly now: number;
  /** Default 365. */
  readonly days?: number;
}

const OID = {
  commonName: "2.5.4.3",
  ecdsaWithSha256: "1.2.840.10045.4.3.2",
  subjectKeyIdentifier: "2.5.29.14",
  keyUsage: "2.5.29.15",
  subjectAltName: "2.5.29.17",
  basicConstraints: "2.5.29.19",
  authorityKeyIdentifier: "2.5.29.35",
  extendedKeyUsage: "2.5.29.37",
  serverAuth: "1.3.6.1.5.5.7.3.1",
} as const;

const DAY_MS = 86_400_000;
const CLOCK_SKEW_MS = 5 * 60_000;

/** A self-signed certificate authority that may sign leaves only. */
export function createCa({ commonName, now, days = 3650 }: CaOptions): KeyCertificate {
  const key = newKey();
  const name = distinguishedName(commonName);
  const extensions = [
    extension(OID.basicConstraints, true, sequence(boolean(true), integer(Buffer.from([0])))),
    extension(OID.keyUsage, true, bitString(Buffer.from([0b1000_0110]), 1)), // digitalSignature, keyCertSign, cRLSign
    extension(OID.subjectKeyIdentifier, false, octetString(keyId(key))),
  ];
  return build({ issuer: name, subject: name, key, signer: key, now, days, extensions });
}

/**
 * A server certificate signed by `ca` (made by {@link createCa}).
 * @throws MeshError `BAD_CERTIFICATE` without any name, or with something that is no IP address among the addresses
 */
export function issueServerCertificate(ca: KeyCertificate, options: LeafOptions): KeyCertificate {
  const { dnsNames = [], ipAddresses = [], now, days = 365 } = options;
  const commonName = options.commonName ?? dnsNames[0] ?? ipAddresses[0];
  if (commonName === undefined || dnsNames.length + ipAddresses.length === 0) {
    throw new MeshError("BAD_CERTIFICATE", "issuing a server certificate: neither a DNS name nor an IP address");
  }
  const key = newKey();
  const signer = createPrivateKey(ca.keyPem);
  const names = [
    ...dnsNames.map((name) => tlv(0x82, Buffer.from(name, "latin1"))),
    ...ipAddresses.map((ip) => tlv(0x87, addressBytes(ip))),
  ];
  const extensions = [
    extension(OID.basicConstraints, true, sequence()),
    extension(OID.keyUsage, true, bitString(Buffer.from([0b1000_0000]), 7)), // digitalSignature
    extension(OID.extendedKeyUsage, false, sequence(oid(OID.serverAuth))),
    extension(OID.subjectKeyIdentifier, false, octetString(keyId(key))),
    extension(OID.authorityKeyIdentifier, false, sequence(tlv(0x80, keyId(signer)))),
    extension(OID.subjectAltName, false, sequence(...names)),
  ];
  return build({ issuer: subjectOf(ca.certPem), subject: distinguishedName(commonName), key, signer, now, days, extensions });
}

interface Parts {
  readonly issuer: Buffer;
  readonly subject: Buffer;
  readonly key: KeyObject;
  readonly signer: KeyObject;
  readonly now: number;
  readonly days: number;
  readonly extensions: readonly Buffer[];
}

function build({ issuer, subject, key, signer, now, days, extensions }: Parts): KeyCertificate {
  const algorithm = sequence(oid(OID.ecdsaWithSha256));
  const serial = randomBytes(16);
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40; // positive and never empty
  const tbs = sequence(
    tlv(0xa0, integer(Buffer.from([2]))), // v3
    integer(serial),
    algorithm,
    issuer,
    sequence(time(now - CLOCK_SKEW_MS), time(now + days * DAY_MS)),
    subject,
    publicKeyInfo(key),
    tlv(0xa3, sequence(...extensions)),
  );
  const certificate = sequence(tbs, algorithm, bitString(sign("sha256", tbs, signer)));
  return { certPem: pem("CERTIFICATE", certificate), keyPem: key.export({ type: "pkcs8", format: "pem" }).toString() };
}

function newKey(): KeyObject {
  return generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
}

function publicKeyInfo(key: KeyObject): Buffer {
  return createPublicKey(key).export({ type: "spki", format: "der" });
}

// RFC 5280 4.2.1.2, method (1): SHA-1 of the public key's bits.
function keyId(key: KeyObject): Buffer {
  const bits = readElements(readElements(publicKeyInfo(key))[0]?.contents ?? Buffer.alloc(0))[1]?.contents ?? Buffer.alloc(0);
  return createHash("sha1").update(bits.subarray(1)).digest();
}

function distinguishedName(commonName: string): Buffer {
  return sequence(tlv(TAG.set, sequence(oid(OID.commonName), tlv(TAG.utf8, Buffer.from(commonName, "utf8")))));
}

// The issuer must repeat the CA's subject byte for byte: version, serial, algorithm, issuer, validity, then the subject.
function subjectOf(certPem: string): Buffer {
  const certificate = readElements(new X509Certificate(certPem).raw)[0]?.contents ?? Buffer.alloc(0);
  const subject = readElements(readElements(certificate)[0]?.contents ?? Buffer.alloc(0))[5]?.bytes;
  if (subject === undefined) throw new MeshError("BAD_CERTIFICATE", "reading the CA certificate: no subject");
  return subject;
}

function extension(id: string, critical: boolean, value: Buffer): Buffer {
  return sequence(oid(id), ...(critical ? [boolean(true)] : []), octetString(value));
}

function addressBytes(ip: string): Buffer {
  if (isIPv4(ip)) return Buffer.from(ip.split(".").map(Number));
  if (!isIPv6(ip)) throw new MeshError("BAD_CERTIFICATE", `issuing a server certificate: ${JSON.stringify(ip)} is no IP address`);
  // The URL parser writes any spelling of an IPv6 address in its canonical form, with IPv4 tails in hex.
  const [head = "", tail] = new URL(`http://[${ip}]`).hostname.slice(1, -1).split("::");
  const left = head === "" ? [] : head.split(":");
  const right = tail === undefined || tail === "" ? [] : tail.split(":");
  const words = [...left, ...Array<string>(8 - left.length - right.length).fill("0"), ...right];
  return Buffer.from(words.map((word) => word.padStart(4, "0")).join(""), "hex");
}

function pem(label: string, der: Buffer): string {
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}
