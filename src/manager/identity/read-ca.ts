// One CA with its key, out of a Secret. Pure. Invariant: an error names the place that the text came from, and never shows the text.
import { createPrivateKey, type KeyObject, type X509Certificate } from "node:crypto";
import { canSign, type KeyCertificate } from "../../base/certificates.ts";
import { MeshError } from "../../base/errors.ts";
import { readCertificates } from "../../base/pem.ts";

/**
 * Checks that the first certificate of a bundle is that of a CA, that the key is its own, and that leafs can be signed with it.
 * @throws MeshError `CERTIFICATE_INVALID`
 */
export function readCa(pems: KeyCertificate, whereCert: string, whereKey: string): X509Certificate {
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
  return certificate;
}

function readKey(keyPem: string, where: string): KeyObject {
  try {
    return createPrivateKey(keyPem);
  } catch {
    // The cause is left out: what OpenSSL says may repeat what it was given.
    throw new MeshError("CERTIFICATE_INVALID", `reading ${where}: not a PEM private key`);
  }
}
