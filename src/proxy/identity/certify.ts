// Makes keys (ECDSA P-256), and asks a replica of the manager for a certificate for one. Invariants: a
// private key never leaves the process, and the call ends within a bound.
import { createPrivateKey, generateKeyPair } from "node:crypto";
import { promisify } from "node:util";
import { onAbort } from "../../base/abort.ts";
import type { Clock } from "../../base/clock.ts";
import { MeshError } from "../../base/errors.ts";
import type { CertificateReplyMessage } from "../../mesh/contract/messages.ts";
import { CERTIFY } from "../../wire/load-proto.ts";
import type { ManagerAccess } from "./manager-access.ts";
import { openManagerChannel } from "./manager-channel.ts";

/**
 * Asks the manager for a certificate for this public key (SPKI, DER).
 * @throws grpc-js' error if the manager says no or cannot be reached; MeshError `TOKEN_UNREADABLE`,
 * `MANAGER_CA_UNREADABLE`, `MANAGER_SILENT`, `ABORTED`
 */
export type Certify = (publicKey: Uint8Array, signal: AbortSignal) => Promise<CertificateReplyMessage>;

export interface CertifyDeps {
  readonly manager: string;
  readonly access: ManagerAccess;
  readonly clock: Clock;
  readonly connect?: typeof openManagerChannel;
}

/** Long enough for the manager to ask the API server about the token. */
const PATIENCE_MS = 10_000;

export function createCertify({ manager, access, clock, connect = openManagerChannel }: CertifyDeps): Certify {
  return async (publicKey, signal) => {
    const pass = await access.pass();
    const channel = connect(manager, pass);
    const { promise, resolve, reject } = Promise.withResolvers<CertificateReplyMessage>();
    const deadline = clock.after(PATIENCE_MS, () =>
      reject(new MeshError("MANAGER_SILENT", `asking ${manager} for a certificate: no answer within ${PATIENCE_MS / 1000} s`)),
    );
    const unlink = onAbort(signal, () =>
      reject(new MeshError("ABORTED", "asking for a certificate: aborted", { cause: signal.reason })),
    );
    const call = channel.makeUnaryRequest(
      CERTIFY.path,
      CERTIFY.requestSerialize,
      CERTIFY.responseDeserialize,
      { publicKey },
      pass.metadata,
      (error, reply) => {
        if (error !== null) reject(error);
        else if (reply === undefined) reject(new MeshError("MANAGER_SILENT", `asking ${manager} for a certificate: no answer`));
        else resolve(reply);
      },
    );
    try {
      return await promise;
    } finally {
      deadline.cancel();
      unlink();
      call.cancel();
      channel.close();
    }
  };
}

/** `publicKey` is a SubjectPublicKeyInfo in DER. */
export async function newKey() {
  const { publicKey, privateKey: pem } = await promisify(generateKeyPair)("ec", {
    namedCurve: "P-256",
    publicKeyEncoding: { type: "spki", format: "der" },
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
  });
  return { privateKey: createPrivateKey(pem), pem, publicKey };
}
