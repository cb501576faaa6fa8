// The volume with the certificate of the operator's webhook server, for the proxy, which shows the same one.
// Pure. The proxy mounts the volume at a path of its own: one of the operator's paths may be in use in the
// proxy's image. Called by webhook-port.ts.
import { posix } from "node:path";
import { WEBHOOK_CERT_MOUNT, WEBHOOK_PORT } from "./names.ts";
import type { Container, PodSpec, Volume, VolumeMount } from "./pod-manifest.ts";

export interface CertificateMount {
  readonly mount: VolumeMount;
  /** The folder of the certificate in the proxy's container. */
  readonly certDir: string;
}

export interface NoCertificate {
  readonly reason: "NoCertificateVolume" | "CertificateUnreadable";
  readonly message: string;
}

/** @param theirs the containers without the mesh's; those that declare the port are asked first */
export function certificateMount(
  spec: PodSpec,
  theirs: readonly Container[],
  port: number,
  certDir: string,
): CertificateMount | NoCertificate {
  const serving = theirs.filter(({ ports = [] }) =>
    ports.some(({ containerPort }) => [port, WEBHOOK_PORT].includes(containerPort)),
  );
  const [mount] = [...serving, ...theirs].flatMap((container) => mountFor(container, certDir) ?? []);
  const volume = spec.volumes?.find(({ name }) => name === mount?.name);
  // The proxy does not have the variables of a subPathExpr.
  if (mount === undefined || volume === undefined || mount.subPathExpr !== undefined) {
    const message = `no volume is mounted at ${certDir}: mount the certificate there, without subPathExpr, so that the proxy can serve it too`;
    return { reason: "NoCertificateVolume", message };
  }
  if (!isReadable(volume, spec)) {
    const message = `the files of volume ${volume.name} are readable by root alone: set spec.securityContext.fsGroup of the pod, or the volume's defaultMode to 0444`;
    return { reason: "CertificateUnreadable", message };
  }
  const { name, subPath, mountPath } = mount;
  return {
    mount: { name, mountPath: WEBHOOK_CERT_MOUNT, readOnly: true, ...(subPath === undefined ? {} : { subPath }) },
    certDir: posix.join(WEBHOOK_CERT_MOUNT, posix.relative(absolute(mountPath), absolute(certDir))),
  };
}

/** The mount that has the folder: the innermost one. */
function mountFor({ volumeMounts = [] }: Container, folder: string): VolumeMount | undefined {
  return volumeMounts
    .filter(({ mountPath }) => `${absolute(folder)}/`.startsWith(absolute(mountPath) === "/" ? "/" : `${absolute(mountPath)}/`))
    .sort((a, b) => absolute(b.mountPath).length - absolute(a.mountPath).length)[0];
}

function absolute(path: string): string {
  return posix.resolve("/", path);
}

const OTHERS_READ = 0o004;
const DEFAULT_MODE = 0o644;

// The files of a Secret belong to root, and the proxy is not root. With an fsGroup the kubelet lets the pod's
// group read them.
function isReadable({ secret, projected }: Volume, { securityContext }: PodSpec): boolean {
  const source = secret ?? projected;
  return (
    source === undefined || securityContext?.fsGroup !== undefined || ((source.defaultMode ?? DEFAULT_MODE) & OTHERS_READ) !== 0
  );
}
