// The entries that a pod gets in its /etc/hosts: the API server's names, for clients that have
// `https://kubernetes.default.svc` built in, and the manager's name, where the pod does not ask the cluster's
// DNS. Invariant: a second call changes nothing.
import type { InjectionSettings } from "./injection.ts";
import { ALIAS_PORT } from "./names.ts";
import type { Plan } from "./plan.ts";
import type { PodSpec } from "./pod-manifest.ts";

type Aliases = NonNullable<PodSpec["hostAliases"]>;

const LOOPBACK = "127.0.0.1";
const PORT_START = "net.ipv4.ip_unprivileged_port_start";
const DEFAULT_DOMAIN = "cluster.local";

export function withHostAliases(spec: PodSpec, { hostAliases, settings }: Plan): PodSpec {
  const withNames = hostAliases ? withApiServerNames(spec, settings) : spec;
  const { managerIPs = [] } = settings;
  if (!needsManagerAlias(spec) || managerIPs.length === 0) return withNames;
  return { ...withNames, hostAliases: aliased(withNames.hostAliases, [hostOf(settings)], managerIPs) };
}

/** Warns where the sidecar may not find the manager. */
export function dnsWarnings(spec: PodSpec, { settings }: Plan): string[] {
  const { managerIPs = [] } = settings;
  const host = hostOf(settings);
  const hasOwnAlias = spec.hostAliases?.some(({ hostnames }) => hostnames?.includes(host));
  if (!needsManagerAlias(spec) || managerIPs.length > 0 || hasOwnAlias) return [];
  return [`dnsPolicy ${spec.dnsPolicy}: the sidecar may not find ${host}, whose Service has no cluster IP; use ClusterFirst`];
}

/** The resolvers of such a pod are the node's, or those that the pod names. */
function needsManagerAlias({ dnsPolicy }: PodSpec): boolean {
  return dnsPolicy === "Default" || dnsPolicy === "None";
}

function hostOf({ managerAddress }: Pick<InjectionSettings, "managerAddress">): string {
  return managerAddress.slice(0, managerAddress.lastIndexOf(":"));
}

/** The sysctl, which the Pod Security level "restricted" allows, lets the proxy listen on 443 without a capability. */
function withApiServerNames(spec: PodSpec, { clusterDomain = DEFAULT_DOMAIN }: InjectionSettings): PodSpec {
  const short = ["kubernetes", "kubernetes.default", "kubernetes.default.svc"];
  const names = [...short, `kubernetes.default.svc.${clusterDomain}`];
  return {
    ...spec,
    hostAliases: aliased(spec.hostAliases, names, [LOOPBACK]),
    securityContext: withPortStart(spec.securityContext),
  };
}

/** The names with these addresses and with no others. */
function aliased(aliases: Aliases = [], names: readonly string[], ips: readonly string[]): Aliases {
  const others = aliases.map((alias) => ({
    ...alias,
    hostnames: (alias.hostnames ?? []).filter((name) => !names.includes(name)),
  }));
  const ours = ips.map((ip) => {
    const present = others.filter((alias) => alias.ip === ip);
    return { ...present[0], ip, hostnames: [...names, ...present.flatMap(({ hostnames }) => hostnames)] };
  });
  return [...ours, ...others.filter(({ ip, hostnames }) => !ips.includes(ip) && hostnames.length > 0)];
}

function withPortStart(context: PodSpec["securityContext"]): NonNullable<PodSpec["securityContext"]> {
  const sysctls = context?.sysctls ?? [];
  const portStart = sysctls.find(({ name }) => name === PORT_START);
  if (portStart !== undefined && Number(portStart.value) <= ALIAS_PORT) return { ...context };
  const others = sysctls.filter(({ name }) => name !== PORT_START);
  return { ...context, sysctls: [...others, { name: PORT_START, value: `${ALIAS_PORT}` }] };
}
