// A scripted identity of the mesh: a CA, the certificates of the manager and the proxies, and the files that a kubelet projects
// into a pod. It uses real time, since TLS reads the clock.
import { createPublicKey } from "node:crypto";
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  createCa,
  crossSignCa,
  issueServerCertificate,
  type KeyCertificate,
  signServerCertificate,
} from "../../src/base/certificates.ts";
import type { CertificateReplyMessage } from "../../src/mesh/contract/messages.ts";
import { SERVING_NAMES } from "../../src/proxy/identity/serving-certificate.ts";

/** A name that is in no proxy's certificate. */
export const MANAGER_HOST = "127.0.0.2";

export interface IssueOptions {
  /** The default is all that a proxy needs. */
  readonly dnsNames?: readonly string[];
  readonly days?: number;
  /** Wall time in milliseconds since the epoch; default now. */
  readonly now?: number;
  /** PEM to append to the certificate. */
  readonly behind?: string;
  /** The CAs that the manager announces; the default is the CA. */
  readonly trustPem?: string;
}

export function newMeshCa(commonName = "ctrlmesh"): KeyCertificate {
  return createCa({ commonName, now: Date.now(), maxIntermediates: 2 });
}

export function managerCertificate(ca: KeyCertificate): KeyCertificate {
  return issueServerCertificate(ca, {
    dnsNames: ["ctrlmesh-manager.ctrlmesh-system.svc"],
    ipAddresses: [MANAGER_HOST],
    now: Date.now(),
  });
}

/** A proxy's certificate, which it could also use in the manager's place. */
export function proxyCertificate(ca: KeyCertificate): KeyCertificate {
  return issueServerCertificate(ca, { ...SERVING_NAMES, now: Date.now() });
}

/** The manager's answer to a certificate request of a proxy. */
export function issue(ca: KeyCertificate, publicKey: Uint8Array, options: IssueOptions = {}): CertificateReplyMessage {
  const { dnsNames = SERVING_NAMES.dnsNames, now = Date.now(), days = 1, behind = "", trustPem = ca.certPem } = options;
  const key = createPublicKey({ key: Buffer.from(publicKey), format: "der", type: "spki" });
  const leaf = signServerCertificate(ca, key, { dnsNames, ipAddresses: SERVING_NAMES.ipAddresses, now, days });
  return { chainPem: `${leaf}${behind}`, trustPem };
}

/** The certificate for `newer`'s name and key that also clients of `older` accept. */
export function crossSigned(older: KeyCertificate, newer: KeyCertificate): string {
  return crossSignCa(older, newer.certPem, 1);
}

/** A volume like the kubelet's: `..data` links to the files and is replaced as a whole. */
export interface ProjectedVolume {
  readonly caFile: string;
  readonly tokenFile: string;
  readonly dataDir: string;
  /** An undefined file does not exist. */
  write(files: { readonly ca?: string; readonly token?: string }): Promise<void>;
  remove(): Promise<void>;
}

export async function createProjectedVolume(): Promise<ProjectedVolume> {
  const root = await mkdtemp(join(tmpdir(), "ctrlmesh-identity-"));
  const dir = join(root, "identity");
  await mkdir(dir);
  await symlink("..data/mesh.crt", join(dir, "mesh.crt"));
  await symlink("..data/token", join(dir, "token"));
  let generation = 0;
  return {
    caFile: join(dir, "mesh.crt"),
    tokenFile: join(dir, "token"),
    dataDir: join(root, "data"),
    async write({ ca, token }) {
      const fresh = `..${++generation}`;
      await mkdir(join(dir, fresh));
      if (ca !== undefined) await writeFile(join(dir, fresh, "mesh.crt"), ca);
      if (token !== undefined) await writeFile(join(dir, fresh, "token"), token);
      await symlink(fresh, join(dir, "..new"));
      await rename(join(dir, "..new"), join(dir, "..data"));
      await rm(join(dir, `..${generation - 1}`), { recursive: true, force: true });
    },
    remove: () => rm(root, { recursive: true, force: true }),
  };
}
