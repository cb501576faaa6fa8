// Checks an issued or a stored certificate before its use. Invariant: every client that trusts the CAs of the
// mesh accepts a checked certificate, on every name that operators use. Pure.
import type { KeyObject, X509Certificate } from "node:crypto";
import { errorMessage, MeshError } from "../../base/errors.ts";
import { readCertificates } from "../../base/pem.ts";
import { SERVING_NAMES } from "./serving-certificate.ts";

export interface CheckOptions {
  readonly privateKey: KeyObject;
  /** The URI of this pod, if peers have to know it. */
  readonly clientName?: string | undefined;
  readonly trusts: readonly (readonly X509Certificate[])[];
  readonly now: number;
}

const SERVER_AUTH = "1.3.6.1.5.5.7.3.1";
const CLIENT_AUTH = "1.3.6.1.5.5.7.3.2";

/** Returns the first certificate of the chain. @throws MeshError `CERTIFICATE_UNFIT` with every problem */
export function checkCertificate(chainPem: string, { privateKey, trusts, now, clientName }: CheckOptions): X509Certificate {
  const [leaf, ...others] = readChain(chainPem);
  const problems: string[] = [];
  if (!leaf.checkPrivateKey(privateKey)) problems.push("it is for another key");
  if (leaf.ca) problems.push("it is a CA's");
  if (leaf.keyUsage !== undefined && !leaf.keyUsage.includes(SERVER_AUTH)) problems.push("it is not for servers");
  const [from, to] = [leaf.validFromDate.toISOString(), leaf.validToDate.toISOString()];
  if (!isCurrent(leaf, now)) problems.push(`it is good from ${from} to ${to}, and not now`);
  if (!trusts.every((anchors) => leadsTo(leaf, others, anchors, now))) problems.push("it does not lead to a CA of the mesh");
  if (clientName !== undefined && !isForClient(leaf, clientName)) problems.push(`it does not name the client ${clientName}`);
  const missing = missingNames(leaf);
  if (missing.length > 0) problems.push(`it is not for ${missing.join(", ")}`);
  if (problems.length > 0) throw unfit(problems.join("; "));
  return leaf;
}

function readChain(chainPem: string): [X509Certificate, ...X509Certificate[]] {
  try {
    return readCertificates(chainPem, "the chain");
  } catch (error) {
    throw unfit(errorMessage(error));
  }
}

// CAs sign for each other during a rotation. Any path to a trusted one is enough.
function leadsTo(
  certificate: X509Certificate,
  between: readonly X509Certificate[],
  anchors: readonly X509Certificate[],
  now: number,
): boolean {
  const signed = (by: X509Certificate) =>
    by.ca && isCurrent(by, now) && certificate.checkIssued(by) && certificate.verify(by.publicKey);
  if (anchors.some(signed)) return true;
  return between.some((next) => {
    const others = between.filter((other) => other !== next);
    return signed(next) && leadsTo(next, others, anchors, now);
  });
}

function missingNames(leaf: X509Certificate): readonly string[] {
  return [
    ...SERVING_NAMES.dnsNames.filter((name) => leaf.checkHost(name, { subject: "never" }) === undefined),
    ...SERVING_NAMES.ipAddresses.filter((address) => leaf.checkIP(address) === undefined),
  ];
}

function isForClient({ keyUsage, subjectAltName = "" }: X509Certificate, name: string): boolean {
  return keyUsage?.includes(CLIENT_AUTH) === true && subjectAltName.split(", ").includes(`URI:${name}`);
}

function isCurrent({ validFromDate, validToDate }: X509Certificate, now: number): boolean {
  return validFromDate.getTime() <= now && now < validToDate.getTime();
}

function unfit(why: string): MeshError {
  return new MeshError("CERTIFICATE_UNFIT", `checking the certificate for the operator: ${why}`);
}
