// The structure of X.509 certificates (RFC 5280): fields and extensions in, PEM out. Invariant: an issuer
// repeats its CA's subject and key identifier byte for byte, also those of a CA that another tool made.
import { createHash, createPublicKey, type KeyObject, randomBytes, sign, type X509Certificate } from "node:crypto";
import { isIPv4, isIPv6 } from "node:net";
import { bitString, boolean, type DerElement, integer, octetString, oid, readElements, sequence, TAG, time, tlv } from "./der.ts";
import { MeshError } from "./errors.ts";

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
  clientAuth: "1.3.6.1.5.5.7.3.2",
} as const;

const NO_BYTES = Buffer.alloc(0);

interface CertificateParts {
  readonly issuer: Buffer;
  readonly subject: Buffer;
  readonly key: KeyObject;
  readonly signer: KeyObject;
  /** Wall times in milliseconds. */
  readonly from: number;
  readonly until: number;
  readonly extensions: readonly Buffer[];
}

export function buildCertificate({ issuer, subject, key, signer, from, until, extensions }: CertificateParts): string {
  const { algorithm, hash } = signatureOf(signer);
  const serial = randomBytes(16);
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40; // positive and without leading zeros
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

/** True if a CA with this key can sign. */
export function canSign({ asymmetricKeyType }: KeyObject): boolean {
  return asymmetricKeyType === "ec" || asymmetricKeyType === "rsa" || asymmetricKeyType === "ed25519";
}

function signatureOf(signer: KeyObject): { algorithm: Buffer; hash: string | null } {
  switch (signer.asymmetricKeyType) {
    case "ec":
      return { algorithm: sequence(oid(OID.ecdsaWithSha256)), hash: "sha256" };
    case "rsa":
      return { algorithm: sequence(oid(OID.rsaWithSha256), tlv(0x05)), hash: "sha256" }; // RFC 4055 requires the NULL
    case "ed25519":
      return { algorithm: sequence(oid(OID.ed25519)), hash: null };
    default:
      throw new MeshError("BAD_CERTIFICATE", `signing a certificate: a key of type ${signer.asymmetricKeyType} cannot be used`);
  }
}

export function caExtensions(id: Buffer, maxIntermediates: number): Buffer[] {
  return [
    extension(OID.basicConstraints, true, sequence(boolean(true), integer(Buffer.from([maxIntermediates])))),
    extension(OID.keyUsage, true, bitString(Buffer.from([0b1000_0110]), 1)), // digitalSignature, keyCertSign, cRLSign
    extension(OID.subjectKeyIdentifier, false, octetString(id)),
  ];
}

/**
 * @param clientName a URI; with it, the certificate is for clients too
 * @throws MeshError `BAD_CERTIFICATE` for an invalid IP address
 */
export function serverExtensions(
  issuer: X509Certificate,
  key: KeyObject,
  dnsNames: readonly string[],
  ipAddresses: readonly string[],
  clientName: string | undefined,
): Buffer[] {
  const names = [
    ...dnsNames.map((name) => tlv(0x82, Buffer.from(name, "latin1"))),
    ...ipAddresses.map((ip) => tlv(0x87, addressBytes(ip))),
    ...(clientName === undefined ? [] : [tlv(0x86, Buffer.from(clientName, "latin1"))]),
  ];
  const usages = [OID.serverAuth, ...(clientName === undefined ? [] : [OID.clientAuth])];
  return [
    extension(OID.basicConstraints, true, sequence()),
    extension(OID.keyUsage, true, bitString(Buffer.from([0b1000_0000]), 7)), // digitalSignature
    extension(OID.extendedKeyUsage, false, sequence(...usages.map(oid))),
    extension(OID.subjectKeyIdentifier, false, octetString(keyId(key))),
    authorityKeyId(issuer),
    extension(OID.subjectAltName, false, sequence(...names)),
  ];
}

export function authorityKeyId(issuer: X509Certificate): Buffer {
  return extension(OID.authorityKeyIdentifier, false, sequence(tlv(0x80, keyIdOf(issuer))));
}

function publicKeyInfo(key: KeyObject): Buffer {
  return (key.type === "public" ? key : createPublicKey(key)).export({ type: "spki", format: "der" });
}

// RFC 5280 4.2.1.2, method (1): SHA-1 of the public key's bits.
export function keyId(key: KeyObject): Buffer {
  const bits = readElements(firstContents(publicKeyInfo(key)))[1]?.contents ?? NO_BYTES;
  return createHash("sha1").update(bits.subarray(1)).digest();
}

export function distinguishedName(commonName: string): Buffer {
  return sequence(tlv(TAG.set, sequence(oid(OID.commonName), tlv(TAG.utf8, Buffer.from(commonName, "utf8")))));
}

// The key identifier in the CA's certificate: another tool may compute it differently.
export function keyIdOf(certificate: X509Certificate): Buffer {
  const id = oid(OID.subjectKeyIdentifier);
  const extensions = fieldsOf(certificate).find(({ tag }) => tag === 0xa3)?.contents ?? NO_BYTES;
  for (const { contents } of readElements(firstContents(extensions))) {
    const parts = readElements(contents);
    if (parts[0]?.bytes.equals(id)) return firstContents(parts.at(-1)?.contents ?? NO_BYTES);
  }
  return keyId(certificate.publicKey);
}

// The fields before the subject are version, serial, algorithm, issuer and validity.
export function subjectOf(certificate: X509Certificate): Buffer {
  const subject = fieldsOf(certificate)[5]?.bytes;
  if (subject === undefined) throw new MeshError("BAD_CERTIFICATE", "reading the CA certificate: no subject");
  return subject;
}

function fieldsOf({ raw }: X509Certificate): DerElement[] {
  return readElements(firstContents(firstContents(raw)));
}

// The contents of the first element; empty if there is none.
function firstContents(bytes: Buffer): Buffer {
  return readElements(bytes)[0]?.contents ?? NO_BYTES;
}

function extension(id: string, critical: boolean, value: Buffer): Buffer {
  return sequence(oid(id), ...(critical ? [boolean(true)] : []), octetString(value));
}

function addressBytes(ip: string): Buffer {
  if (isIPv4(ip)) return Buffer.from(ip.split(".").map(Number));
  if (!isIPv6(ip))
    throw new MeshError("BAD_CERTIFICATE", `issuing a server certificate: ${JSON.stringify(ip)} is not an IP address`);
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
