// Whether the calls of the operator's webhooks reach the proxy of a pod. Pure. In iptables mode the pod's
// network redirects the operator's port. Otherwise the names of that port are given to the proxy's port
// (moved-names.ts). Invariant: an injected pod has the same result as before its injection. Called by
// inject-pod.ts, and for the condition WebhookIntercepted.
import type { WebhookServer } from "../../api/operator-fields.ts";
import { PROXY_CONTAINER } from "../facts/injected-pod.ts";
import { hasNamedPort } from "./moved-names.ts";
import { OUR_CONTAINERS, WEBHOOK_CERT_DIR_ENV, WEBHOOK_PORT_ENV } from "./names.ts";
import type { PodSpec } from "./pod-manifest.ts";
import { type CertificateMount, certificateMount } from "./webhook-certificate.ts";

/** Why the calls go past the proxy. */
export type DirectReason = "PortNotNamed" | "NoCertificateVolume" | "CertificateUnreadable";

export interface Direct {
  readonly kind: "direct";
  readonly reason: DirectReason;
  readonly message: string;
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
  const found = certificateMount(spec, theirs, port, certDir);
  return "reason" in found ? { kind: "direct", ...found } : { kind: "intercepted", port, ...found };
}

/**
 * The operator's server whose calls the pod's proxy takes; undefined: it takes none. `certDir` is in the
 * proxy's container.
 */
export function proxiedServer({ containers, initContainers = [] }: PodSpec): WebhookServer | undefined {
  const { env = [] } = [...initContainers, ...containers].find(({ name }) => name === PROXY_CONTAINER) ?? {};
  const [port, certDir = ""] = [WEBHOOK_PORT_ENV, WEBHOOK_CERT_DIR_ENV].map((of) => env.find(({ name }) => name === of)?.value);
  return port === undefined ? undefined : { port: Number(port), certDir };
}
