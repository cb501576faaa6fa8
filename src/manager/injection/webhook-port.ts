// Whether the calls of the operator's webhooks reach the proxy of a pod. Pure. In iptables mode the pod's network redirects the operator's port.
// Otherwise the names of that port are given to the proxy's port (moved-names.ts). Invariant: an injected pod has the same result as before its
// injection. Called by inject-pod.ts, and for the condition WebhookIntercepted.
import type { WebhookServer } from "../../api/operator-fields.ts";
import { PROXY_CONTAINER } from "../facts/injected-pod.ts";
import { hasNamedPort } from "./moved-names.ts";
import { OUR_CONTAINERS, WEBHOOK_PORT_ENV } from "./names.ts";
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
  if (!redirects && proxiedPort(spec) !== port && !theirs.some((each) => hasNamedPort(each, port))) {
    const message = `no container declares TCP port ${port} with a name: give it one and use it as the targetPort of the Service, or use iptables mode`;
    return { kind: "direct", reason: "PortNotNamed", message };
  }
  const found = certificateMount(spec, theirs, port, certDir);
  return "reason" in found ? { kind: "direct", ...found } : { kind: "intercepted", port, ...found };
}

/** The operator's port whose calls the pod's proxy takes; undefined: it takes none. */
export function proxiedPort({ containers, initContainers = [] }: PodSpec): number | undefined {
  const proxy = [...initContainers, ...containers].find(({ name }) => name === PROXY_CONTAINER);
  const value = proxy?.env?.find(({ name }) => name === WEBHOOK_PORT_ENV)?.value;
  return value === undefined ? undefined : Number(value);
}
