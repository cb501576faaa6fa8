// The plan of one pod's injection, from the annotations in force and the manager's settings. The plan
// contains all decisions. The other modules only build the pod.
import type { InterceptMode } from "../../api/annotations.ts";
import type { WebhookServer } from "../../api/operator-fields.ts";
import type { PodOptions } from "../../api/pod-annotations.ts";
import { parseQuantity } from "../../api/quantity.ts";
import type { InjectionSettings } from "./injection.ts";
import type { PodSpec, Resources } from "./pod-manifest.ts";
import { type Direct, type Intercepted, webhookPort } from "./webhook-port.ts";

export interface Plan {
  readonly mode: InterceptMode;
  /** The names of the Service `kubernetes` resolve to the proxy, which then also listens on 443. */
  readonly hostAliases: boolean;
  /** A native sidecar, not an ordinary container. */
  readonly native: boolean;
  /** Of the sidecar. */
  readonly image: string;
  readonly logLevel: string;
  readonly resources: Resources;
  readonly env: PodOptions["env"];
  /** The containers send their requests to other servers through the proxy. */
  readonly egress: boolean;
  /** Ranges of private addresses to which the proxy connects, divided by commas; "" for none. */
  readonly egressPrivateAddresses: string;
  /**
   * Whether calls of the operator's webhooks reach the proxy; undefined: the operator has no webhook server.
   */
  readonly webhook: Intercepted | Direct | undefined;
  /** The pod's termination grace period. */
  readonly graceSeconds: number;
  readonly settings: InjectionSettings;
}

const DEFAULT_RESOURCES: Resources = { requests: { cpu: "50m", memory: "128Mi" }, limits: { memory: "512Mi" } };

/** Kubernetes' own default of terminationGracePeriodSeconds. */
const DEFAULT_GRACE_SECONDS = 30;

/** The plan for a pod with these options. */
export function planInjection(
  options: PodOptions,
  settings: InjectionSettings,
  spec: PodSpec,
  server: WebhookServer | undefined,
): Plan {
  const mode = options.intercept ?? "env";
  const webhook = server && webhookPort(spec, server, mode === "iptables");
  const { terminationGracePeriodSeconds: graceSeconds } = spec;
  return {
    mode,
    hostAliases: options.hostAliases === true && mode !== "iptables",
    native: options.nativeSidecar ?? settings.nativeSidecars,
    image: options.image ?? settings.proxyImage,
    logLevel: options.logLevel ?? "info",
    resources: resourcesOf(options),
    env: options.env,
    egress: options.egress,
    egressPrivateAddresses: options.egressPrivateAddresses,
    webhook,
    graceSeconds: typeof graceSeconds === "number" ? graceSeconds : DEFAULT_GRACE_SECONDS,
    settings,
  };
}

function resourcesOf(options: PodOptions): Resources {
  const limits = withValues(DEFAULT_RESOURCES.limits, { cpu: options.cpuLimit, memory: options.memoryLimit });
  const desired: Readonly<Record<string, string | undefined>> = { cpu: options.cpu, memory: options.memory };
  // If only the limit is set, it may be below the default request. If only the request is set, it may be
  // above the default limit.
  const requests = withValues(DEFAULT_RESOURCES.requests, desired);
  const lowered = Object.entries(requests).map(([name, value]) => [name, desired[name] ?? smaller(value, limits[name])]);
  const raised = Object.entries(limits).map(([name, value]) => [name, larger(value, desired[name])]);
  return { requests: Object.fromEntries(lowered), limits: Object.fromEntries(raised) };
}

function withValues(
  defaults: Readonly<Record<string, string>> = {},
  set: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const given = Object.entries(set).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return { ...defaults, ...Object.fromEntries(given) };
}

function smaller(value: string, other: string | undefined): string {
  return other !== undefined && amount(other) < amount(value) ? other : value;
}

function larger(value: string, other: string | undefined): string {
  return other !== undefined && amount(other) > amount(value) ? other : value;
}

function amount(quantity: string): number {
  return parseQuantity(quantity) ?? 0;
}
