// Whether the calls of the operator's webhooks reach the proxy of a pod. Pure. In iptables mode the pod's
// network redirects the operator's port. Otherwise the names of that port are given to the proxy's port
// (moved-names.ts). Invariant: an injected pod has the same result as before its injection.
import { posix } from "node:path";
import type { WebhookServer } from "../../api/operator-fields.ts";
import { PROXY_CONTAINER } from "../facts/injected-pod.ts";
import { hasNamedPort } from "./moved-names.ts";
import { OUR_CONTAINERS, WEBHOOK_CERT_DIR_ENV, WEBHOOK_CERT_MOUNT, WEBHOOK_PORT, WEBHOOK_PORT_ENV } from "./names.ts";
import type { Container, PodSpec, Volume, VolumeMount } from "./pod-manifest.ts";

/** Why the calls go past the proxy. */
export type DirectReason = "PortNotNamed" | "NoCertificateVolume" | "CertificateUnreadable";

export interface Direct {
  readonly kind: "direct";
  readonly reason: DirectReason;
  readonly message: string;
}

/** The certificate as the proxy mounts it. */
export interface CertificateMount {
  readonly mount: VolumeMount;
  /** The folder of the certificate in the proxy's container. */
  readonly certDir: string;
}

export interface Intercepted extends CertificateMount {
  readonly kind: "intercepted";
  /** The operator's own port. */
  readonly port: number;
}

/** @param redirects true in iptables mode */
export function webhookPort(spec: PodSpec, { port, certDir }: WebhookServer, redirects: boolean): Intercepted | Direct {
  const theirs = spec.containers.filter(({ name }) => !OUR_CONTAINERS.includes(name));
  if (!redirects && proxiedServer(spec)?.port !== port && !theirs.some((each) => hasNamedPort(each, port))) {
    const message = `no container declares TCP port ${port} with a name: give it one and use it as the targetPort of the Service, or use iptables mode`;
    return { kind: "direct", reason: "PortNotNamed", message };
  }
  const certificate = certificateMount(spec, theirs, port, certDir);
  return "reason" in certificate ? { kind: "direct", ...certificate } : { kind: "intercepted", port, ...certificate };
}

/**
 * The operator's server whose calls the pod's proxy takes; undefined if it takes none. `certDir` is the
 * folder in the proxy's container.
 */
export function proxiedServer({ containers, initContainers = [] }: PodSpec): WebhookServer | undefined {
  const { env = [] } = [...initContainers, ...containers].find(({ name }) => name === PROXY_CONTAINER) ?? {};
  const [port, certDir = ""] = [WEBHOOK_PORT_ENV, WEBHOOK_CERT_DIR_ENV].map(
    (setting) => env.find(({ name }) => name === setting)?.value,
  );
  return port === undefined ? undefined : { port: Number(port), certDir };
}

interface NoCertificate {
  readonly reason: "NoCertificateVolume" | "CertificateUnreadable";
  readonly message: string;
}

/**
 * The mount of the volume with the webhook server's certificate, for the proxy, which shows the same one. The
 * proxy mounts it at a path of its own, since its image may use the operator's path.
 * @param theirs the containers without the mesh's; those that declare the port come first
 */
function certificateMount(
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
