// The option of clients that have `https://kubernetes.default.svc` built in: the names lead to the loopback, and the proxy, which holds no
// capability, may listen on 443 since the pod says that ports from there on are for everybody. That sysctl is one of Kubernetes' safe ones,
// belongs to the pod's own network namespace, and is allowed by the Pod Security level "restricted".
import { ALIAS_PORT } from "./names.ts";
import type { PodSpec } from "./pod-manifest.ts";

const LOOPBACK = "127.0.0.1";
const PORT_START = "net.ipv4.ip_unprivileged_port_start";
const DEFAULT_DOMAIN = "cluster.local";

/** The spec with the names and the sysctl. */
export function withHostAliases(spec: PodSpec, clusterDomain = DEFAULT_DOMAIN): PodSpec {
  const short = ["kubernetes", "kubernetes.default", "kubernetes.default.svc"];
  const names = [...short, `kubernetes.default.svc.${clusterDomain}`];
  const others = (spec.hostAliases ?? []).map((alias) => ({
    ...alias,
    hostnames: (alias.hostnames ?? []).filter((name) => !names.includes(name)),
  }));
  const own = others.find(({ ip }) => ip === LOOPBACK);
  const loopback = { ...own, ip: LOOPBACK, hostnames: [...names, ...(own?.hostnames ?? [])] };
  const rest = others.filter(({ ip, hostnames }) => ip !== LOOPBACK && hostnames.length > 0);
  return { ...spec, hostAliases: [loopback, ...rest], securityContext: withPortStart(spec.securityContext) };
}

function withPortStart(context: PodSpec["securityContext"]): NonNullable<PodSpec["securityContext"]> {
  const sysctls = context?.sysctls ?? [];
  const set = sysctls.find(({ name }) => name === PORT_START);
  if (set !== undefined && Number(set.value) <= ALIAS_PORT) return { ...context };
  const others = sysctls.filter(({ name }) => name !== PORT_START);
  return { ...context, sysctls: [...others, { name: PORT_START, value: `${ALIAS_PORT}` }] };
}
