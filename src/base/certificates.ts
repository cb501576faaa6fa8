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
import { bitString, boolean, type DerElement, integer, octetString, oid, readElements, sequence, TAG, time, tlv } from "./der.ts";
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
  /** How many CAs may stand between it and a leaf; default 0. A CA that shall cross-sign its successors needs some. */
  readonly maxIntermediates?: number;
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
  ed25519: "1.3.101.112",
  rsaWithSha256: "1.2.840.113549.1.1.11",
  subjectKeyIdentifier: "2.5.29.14",
  keyUsage: "2.5.29.15",
  subjectAltName: "2.5.29.17",
  basicConstraints: "2.5.29.19",
  authorityKeyIdentifier: "2.5.29.35",
  extendedKeyUsage: "2.5.29.37",
  serverAuth: "1.3.6.1.5.5.7.3.1",
} as const;

const DAY_MS = 86_400_000;
/** Certificates are valid from this long before they were made, in milliseconds: clocks differ. */
export const CLOCK_SKEW_MS = 5 * 60_000;

/** A self-signed certificate authority; unless said otherwise it may sign leaves only. */
export function createCa({ commonName, now, days = 3650, maxIntermediates = 0 }: CaOptions): KeyCertificate {
  const key = newKey();
  const name = distinguishedName(commonName);
  const extensions = caExtensions(keyId(key), maxIntermediates);
  const certPem = build({ issuer: name, subject: name, key, signer: key, ...validity(now, days), extensions });
  return { certPem, keyPem: pemOfKey(key) };
}

/**
 * A certificate for another CA's name and key, signed by `ca`: who trusts only `ca` verifies with it what the other CA signs. It is
 * valid while both are. Both must have been made with `maxIntermediates`.
 * @param otherPem the other CA's own certificate
 */
export function crossSignCa(ca: KeyCertificate, otherPem: string, maxIntermediates: number): string {
  const [own, other] = [new X509Certificate(ca.certPem), new X509Certificate(otherPem)];
  return build({
    issuer: subjectOf(own),
    subject: subjectOf(other),
    key: other.publicKey,
    signer: createPrivateKey(ca.keyPem),
    from: Math.max(own.validFromDate.getTime(), other.validFromDate.getTime()),
    until: Math.min(own.validToDate.getTime(), other.validToDate.getTime()),
    extensions: [...caExtensions(keyIdOf(other), maxIntermediates), authorityKeyId(own)],
  });
}

/**
 * A key and a server certificate for it, signed by `ca`.
 * @throws MeshError `BAD_CERTIFICATE` without any name, or with something that is no IP address among the addresses
 */
export function issueServerCertificate(ca: KeyCertificate, options: LeafOptions): KeyCertificate {
  const key = newKey();
  return { certPem: signServerCertificate(ca, key, options), keyPem: pemOfKey(key) };
}

/**
 * A server certificate, PEM, for a key of somebody else.
 * @param ca made by {@link createCa}, or a CA from elsewhere with an RSA, EC or Ed25519 key
 * @param key its public half is certified
 * @throws MeshError `BAD_CERTIFICATE` as {@link issueServerCertificate}
 */
export function signServerCertificate(ca: KeyCertificate, key: KeyObject, options: LeafOptions): string {
  const { dnsNames = [], ipAddresses = [], now, days = 365 } = options;
  const commonName = options.commonName ?? dnsNames[0] ?? ipAddresses[0];
  if (commonName === undefined || dnsNames.length + ipAddresses.length === 0) {
    throw new MeshError("BAD_CERTIFICATE", "issuing a server certificate: neither a DNS name nor an IP address");
  }
  const issuer = new X509Certificate(ca.certPem);
  const names = [
    ...dnsNames.map((name) => tlv(0x82, Buffer.from(name, "latin1"))),
    ...ipAddresses.map((ip) => tlv(0x87, addressBytes(ip))),
  ];
  const extensions = [
    extension(OID.basicConstraints, true, sequence()),
    extension(OID.keyUsage, true, bitString(Buffer.from([0b1000_0000]), 7)), // digitalSignature
    extension(OID.extendedKeyUsage, false, sequence(oid(OID.serverAuth))),
    extension(OID.subjectKeyIdentifier, false, octetString(keyId(key))),
    authorityKeyId(issuer),
    extension(OID.subjectAltName, false, sequence(...names)),
  ];
  const subject = distinguishedName(commonName);
  const signer = createPrivateKey(ca.keyPem);
  return build({ issuer: subjectOf(issuer), subject, key, signer, ...validity(now, days), extensions });
}

interface Parts {
  readonly issuer: Buffer;
  readonly subject: Buffer;
  readonly key: KeyObject;
  readonly signer: KeyObject;
  readonly from: number;
  readonly until: number;
  readonly extensions: readonly Buffer[];
}

function build({ issuer, subject, key, signer, from, until, extensions }: Parts): string {
  const { algorithm, hash } = signatureOf(signer);
  const serial = randomBytes(16);
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40; // positive and never empty
  const tbs = sequence(
    tlv(0xa0, integer(Buffer.from([2]))), // v3
    integer(serial),
    algorithm,
    issuer,
    sequence(time(from), time(until)),
    subject,
    publicKeyInfo(key),
    tlv(0xa3, sequence(...extensions)),
  );
  return pem("CERTIFICATE", sequence(tbs, algorithm, bitString(sign(hash, tbs, signer))));
}

function validity(now: number, days: number): Pick<Parts, "from" | "until"> {
  return { from: now - CLOCK_SKEW_MS, until: now + days * DAY_MS };
}

/** True if {@link signServerCertificate} takes a CA with this key. */
export function canSign({ asymmetricKeyType }: KeyObject): boolean {
  return asymmetricKeyType === "ec" || asymmetricKeyType === "rsa" || asymmetricKeyType === "ed25519";
}

function signatureOf(signer: KeyObject): { algorithm: Buffer; hash: string | null } {
  switch (signer.asymmetricKeyType) {
    case "ec":
      return { algorithm: sequence(oid(OID.ecdsaWithSha256)), hash: "sha256" };
    case "rsa":
      return { algorithm: sequence(oid(OID.rsaWithSha256), tlv(0x05)), hash: "sha256" }; // RFC 4055 asks for the NULL
    case "ed25519":
      return { algorithm: sequence(oid(OID.ed25519)), hash: null };
    default:
      throw new MeshError("BAD_CERTIFICATE", `signing a certificate: a key of type ${signer.asymmetricKeyType} cannot be used`);
  }
}

function caExtensions(id: Buffer, maxIntermediates: number): Buffer[] {
  return [
    extension(OID.basicConstraints, true, sequence(boolean(true), integer(Buffer.from([maxIntermediates])))),
    extension(OID.keyUsage, true, bitString(Buffer.from([0b1000_0110]), 1)), // digitalSignature, keyCertSign, cRLSign
    extension(OID.subjectKeyIdentifier, false, octetString(id)),
  ];
}

function authorityKeyId(issuer: X509Certificate): Buffer {
  return extension(OID.authorityKeyIdentifier, false, sequence(tlv(0x80, keyIdOf(issuer))));
}

function newKey(): KeyObject {
  return generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
}

function pemOfKey(key: KeyObject): string {
  return key.export({ type: "pkcs8", format: "pem" }).toString();
}

function publicKeyInfo(key: KeyObject): Buffer {
  return (key.type === "public" ? key : createPublicKey(key)).export({ type: "spki", format: "der" });
}

// RFC 5280 4.2.1.2, method (1): SHA-1 of the public key's bits.
function keyId(key: KeyObject): Buffer {
  const bits = readElements(readElements(publicKeyInfo(key))[0]?.contents ?? Buffer.alloc(0))[1]?.contents ?? Buffer.alloc(0);
  return createHash("sha1").update(bits.subarray(1)).digest();
}

function distinguishedName(commonName: string): Buffer {
  return sequence(tlv(TAG.set, sequence(oid(OID.commonName), tlv(TAG.utf8, Buffer.from(commonName, "utf8")))));
}

// What a CA calls its key itself: one from elsewhere may do so in another way than we do.
function keyIdOf(certificate: X509Certificate): Buffer {
  const id = oid(OID.subjectKeyIdentifier);
  const all = fieldsOf(certificate).find(({ tag }) => tag === 0xa3);
  for (const { contents } of readElements(readElements(all?.contents ?? Buffer.alloc(0))[0]?.contents ?? Buffer.alloc(0))) {
    const parts = readElements(contents);
    const value = parts.at(-1)?.contents ?? Buffer.alloc(0);
    if (parts[0]?.bytes.equals(id)) return readElements(value)[0]?.contents ?? Buffer.alloc(0);
  }
  return keyId(certificate.publicKey);
}

// The issuer must repeat the CA's subject byte for byte: version, serial, algorithm, issuer, validity, then the subject.
function subjectOf(certificate: X509Certificate): Buffer {
  const subject = fieldsOf(certificate)[5]?.bytes;
  if (subject === undefined) throw new MeshError("BAD_CERTIFICATE", "reading the CA certificate: no subject");
  return subject;
}

function fieldsOf({ raw }: X509Certificate): DerElement[] {
  const certificate = readElements(raw)[0]?.contents ?? Buffer.alloc(0);
  return readElements(readElements(certificate)[0]?.contents ?? Buffer.alloc(0));
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
