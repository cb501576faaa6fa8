// Private keys for the certificates of the mesh: ECDSA P-256, made in this process, a new one for each certificate.
import { createPrivateKey, generateKeyPair, type KeyObject } from "node:crypto";

/** A key that has never left the process. */
export interface NewKey {
  readonly privateKey: KeyObject;
  /** PKCS #8. */
  readonly pem: string;
  /** SubjectPublicKeyInfo, DER. */
  readonly publicKey: Uint8Array;
}

export function newKey(): Promise<NewKey> {
  return new Promise((resolve, reject) => {
    const options = {
      namedCurve: "P-256",
      publicKeyEncoding: { type: "spki", format: "der" },
      privateKeyEncoding: { type: "pkcs8", format: "pem" },
    } as const;
    generateKeyPair("ec", options, (error, publicKey, pem) => {
      if (error === null) resolve({ privateKey: createPrivateKey(pem), pem, publicKey });
      else reject(error);
    });
  });
}
