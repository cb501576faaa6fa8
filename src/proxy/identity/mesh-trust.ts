// The CAs of the mesh, which the kubelet projects from the ConfigMap `ctrlmesh-ca`. Invariant: the file is read each time, so that a
// rotated CA needs no restart, and the last good one counts while the file cannot be read. Connections to the manager and the check of
// issued certificates use it.
import type { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { errorMessage, MeshError } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import { readCertificates } from "../../base/pem.ts";

/** The same object for as long as the file does not change. */
export interface MeshTrust {
  readonly pem: string;
  readonly certificates: readonly X509Certificate[];
}

export interface MeshTrustStore {
  /** @throws MeshError `MANAGER_CA_UNREADABLE` if there has never been a good one */
  current(): Promise<MeshTrust>;
}

export function createMeshTrustStore(file: string, log: Logger): MeshTrustStore {
  let trust: MeshTrust | undefined;
  let warned = false;
  return {
    async current() {
      try {
        const pem = await readFile(file, "utf8");
        if (pem !== trust?.pem) trust = { pem, certificates: readCertificates(pem, "the bundle") };
        warned = false;
      } catch (cause) {
        if (trust === undefined)
          throw new MeshError("MANAGER_CA_UNREADABLE", `reading the mesh's CA from ${file}: ${errorMessage(cause)}`);
        if (!warned) log.warn({ reason: errorMessage(cause), file }, "the mesh's CA is not readable; keeping the last good one");
        warned = true;
      }
      return trust;
    },
  };
}
