// Decides how the calls of the operator's webhooks reach the proxy of a pod. Pure. In iptables mode the pod's
// network redirects the operator's port. Otherwise the proxy's port gets the names of that port. Invariant:
// a pod has the same result before and after its injection.
import { posix } from "node:path";
import { PROXY_CONTAINER } from "../../api/injected-pod.ts";
import type { WebhookServer } from "../../api/operator-fields.ts";
import { isOurs, WEBHOOK_CERT_DIR_ENV, WEBHOOK_CERT_MOUNT, WEBHOOK_PORT, WEBHOOK_PORT_ENV } from "./names.ts";
import {
  type Container,
  containersOf,
  type Handler,
  type Lifecycle,
  type PodSpec,
  type Port,
  type Volume,
  type VolumeMount,
} from "./pod-manifest.ts";

export interface Direct {
  readonly kind: "direct";
  readonly reason: "PortNotNamed" | "NoCertificateVolume" | "CertificateUnreadable";
  readonly message: string;
}

export interface Intercepted {
  readonly kind: "intercepted";
  readonly port: number;
  readonly mount: VolumeMount;
  /** The folder of the certificate in the proxy's container. */
  readonly certDir: string;
}

/** @param redirects true in iptables mode */
export function webhookPort(spec: PodSpec, { port, certDir }: WebhookServer, redirects: boolean): Intercepted | Direct {
  const theirs = spec.containers.filter((each) => !isOurs(each));
  if (!redirects && proxiedServer(spec)?.port !== port && !theirs.some((each) => hasNamedPort(each, port))) {
    const message = `no container declares TCP port ${port} with a name: give it one and use it as the targetPort of the Service, or use iptables mode`;
    return { kind: "direct", reason: "PortNotNamed", message };
  }
  return withCertificate(spec, theirs, port, certDir);
}

/** The server whose calls the pod's proxy takes, if any, with the folder in the proxy's container. */
export function proxiedServer(spec: PodSpec): WebhookServer | undefined {
  const { env = [] } = containersOf(spec).find(({ name }) => name === PROXY_CONTAINER) ?? {};
  const [port, certDir = ""] = [WEBHOOK_PORT_ENV, WEBHOOK_CERT_DIR_ENV].map(
    (setting) => env.find(({ name }) => name === setting)?.value,
  );
  return port === undefined ? undefined : { port: Number(port), certDir };
}

/**
 * The proxy serves with the certificate of the webhook server. It mounts the volume at another path, since
 * its image may use the operator's path.
 */
function withCertificate(spec: PodSpec, theirs: readonly Container[], port: number, certDir: string): Intercepted | Direct {
  const serving = theirs.filter(({ ports = [] }) =>
    ports.some(({ containerPort }) => [port, WEBHOOK_PORT].includes(containerPort)),
  );
  const [mount] = [...serving, ...theirs].flatMap((container) => mountFor(container, certDir) ?? []);
  const volume = spec.volumes?.find(({ name }) => name === mount?.name);
  // The proxy does not have the variables of a subPathExpr.
  if (mount === undefined || volume === undefined || mount.subPathExpr !== undefined) {
    const message = `no volume is mounted at ${certDir}: mount the certificate there, without subPathExpr, so that the proxy can serve it too`;
    return { kind: "direct", reason: "NoCertificateVolume", message };
  }
  if (!isReadable(volume, spec)) {
    const message = `the files of volume ${volume.name} are readable by root alone: set spec.securityContext.fsGroup of the pod, or the volume's defaultMode to 0444`;
    return { kind: "direct", reason: "CertificateUnreadable", message };
  }
  const { name, subPath, mountPath } = mount;
  return {
    kind: "intercepted",
    port,
    mount: { name, mountPath: WEBHOOK_CERT_MOUNT, readOnly: true, ...(subPath === undefined ? {} : { subPath }) },
    certDir: posix.join(WEBHOOK_CERT_MOUNT, posix.relative(absolute(mountPath), absolute(certDir))),
  };
}

function mountFor({ volumeMounts = [] }: Container, folder: string): VolumeMount | undefined {
  return volumeMounts
    .filter(({ mountPath }) => `${absolute(folder)}/`.startsWith(absolute(mountPath) === "/" ? "/" : `${absolute(mountPath)}/`))
    .sort((a, b) => absolute(b.mountPath).length - absolute(a.mountPath).length)[0];
}

const absolute = (path: string) => posix.resolve("/", path);

const OTHERS_READ = 0o004;
const DEFAULT_MODE = 0o644;

// The files of a Secret belong to root, and the proxy is not root. With an fsGroup its group may read them.
function isReadable({ secret, projected }: Volume, { securityContext }: PodSpec): boolean {
  const source = secret ?? projected;
  return (
    source === undefined || securityContext?.fsGroup !== undefined || ((source.defaultMode ?? DEFAULT_MODE) & OTHERS_READ) !== 0
  );
}

function hasNamedPort({ ports = [] }: Container, port: number): boolean {
  return ports.some((each) => isNamed(each, port));
}

/**
 * The container with the names of `port` at the proxy's port, so that a Service with such a targetPort finds
 * the proxy. The ports stay in this container: EndpointSlices know none of a native sidecar before Kubernetes
 * 1.33. Probes and hooks with such a name still reach the operator. A second call changes nothing.
 */
export function withMovedNames(container: Container, port: number): Container {
  const ports = container.ports?.map((each) => (isNamed(each, port) ? { ...each, containerPort: WEBHOOK_PORT } : each));
  const names = ports?.filter((each) => isNamed(each, WEBHOOK_PORT)).map(({ name }) => name);
  if (ports === undefined || names === undefined || names.length === 0) return container;
  // The kubelet looks for the name in the ports of the same container.
  const target = <T extends { readonly port: string | number }>(to: T): T =>
    typeof to.port === "string" && names.includes(to.port) ? { ...to, port } : to;
  const handler = <H extends Handler>(probe: H): H => ({
    ...probe,
    ...(probe.httpGet && { httpGet: target(probe.httpGet) }),
    ...(probe.tcpSocket && { tcpSocket: target(probe.tcpSocket) }),
  });
  const { startupProbe, livenessProbe, readinessProbe, lifecycle } = container;
  return {
    ...container,
    ports,
    ...(startupProbe && { startupProbe: handler(startupProbe) }),
    ...(livenessProbe && { livenessProbe: handler(livenessProbe) }),
    ...(readinessProbe && { readinessProbe: handler(readinessProbe) }),
    ...(lifecycle && { lifecycle: hooks(lifecycle, handler) }),
  };
}

function hooks(lifecycle: Lifecycle, handler: (hook: Handler) => Handler): Lifecycle {
  const { postStart, preStop } = lifecycle;
  return {
    ...lifecycle,
    ...(postStart && { postStart: handler(postStart) }),
    ...(preStop && { preStop: handler(preStop) }),
  };
}

function isNamed({ name = "", containerPort, protocol = "TCP" }: Port, port: number): boolean {
  return name !== "" && containerPort === port && protocol === "TCP";
}
