// The CAs of the mesh, which the kubelet projects from the ConfigMap `ctrlmesh-ca`. Invariant: the file is read each time, so that a
// rotated CA needs no restart, and the last good one counts while the file cannot be read. Connections to the manager and the check of
// issued certificates use it.
import type { X509Certificate } from "node:crypto";
import { createLastGoodFile, type LastGoodFile } from "../../base/last-good-file.ts";
import type { Logger } from "../../base/log.ts";
import { readCertificates } from "../../base/pem.ts";

/** The same object for as long as the file does not change. */
export interface MeshTrust {
  readonly pem: string;
  readonly certificates: readonly X509Certificate[];
}

/** @throws MeshError `MANAGER_CA_UNREADABLE` if there has never been a good one */
export type MeshTrustStore = LastGoodFile<MeshTrust>;

export function createMeshTrustStore(file: string, log: Logger): MeshTrustStore {
  const parse = (pem: string): MeshTrust => ({ pem, certificates: readCertificates(pem, "the bundle") });
  return createLastGoodFile({ file, name: "the mesh's CA", code: "MANAGER_CA_UNREADABLE", parse, log });
}
