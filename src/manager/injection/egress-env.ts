// The environment variables by which HTTP clients find the proxy for requests to other servers than the API
// server. Invariants: a container that has a proxy of its own keeps it, with a warning; calls inside the
// cluster go direct, as before.
import { EGRESS_PORT } from "./names.ts";
import type { Plan } from "./plan.ts";
import type { Container, EnvVar } from "./pod-manifest.ts";

/** curl reads only the lower-case `http_proxy`; most other clients read both cases of each. */
const PROXY_VARIABLES = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];
const DIRECT_VARIABLES = ["NO_PROXY", "no_proxy"];
/** The bound for all containers of a pod together, since each host is looked at. */
const MAX_DIRECT_CHARS = 65_536;
const PROXY_URL = `http://127.0.0.1:${EGRESS_PORT}`;
const DEFAULT_DOMAIN = "cluster.local";

/** The container's variables with those of the egress proxy. A second call changes nothing. */
export function withEgressEnv(env: readonly EnvVar[], plan: Plan): readonly EnvVar[] {
  if (!plan.egress || ownProxies(env).length > 0) return env;
  const configured = DIRECT_VARIABLES.flatMap((name) => (plainValue(env, name) ?? "").split(",")).map((part) => part.trim());
  const direct = [...new Set([...configured, ...directHosts(plan)].filter((part) => part !== ""))].join(",");
  const ours = [
    ...PROXY_VARIABLES.map((name) => ({ name, value: PROXY_URL })),
    ...DIRECT_VARIABLES.map((name) => ({ name, value: direct })),
  ];
  // A variable keeps its place, since its value may refer to those before it.
  const replaced = env.map((each) => ours.find(({ name }) => name === each.name) ?? each);
  return [...replaced, ...ours.filter(({ name }) => !env.some((each) => each.name === name))];
}

/** Why the hosts that the containers reach without a proxy cannot be extended; undefined if they can. */
export function egressRefusal(containers: readonly Container[], plan: Plan): string | undefined {
  if (!plan.egress) return undefined;
  const lengths = containers.flatMap(({ env = [] }) => DIRECT_VARIABLES.map((name) => plainValue(env, name)?.length ?? 0));
  const chars = lengths.reduce((sum, length) => sum + length, 0);
  if (chars <= MAX_DIRECT_CHARS) return undefined;
  return `NO_PROXY and no_proxy of all containers have ${chars} characters together, but at most ${MAX_DIRECT_CHARS} are allowed`;
}

/**
 * Warnings about a container whose requests do not go through the egress proxy, or no longer through its own
 * one.
 */
export function egressWarnings({ name, env = [], envFrom = [] }: Container, plan: Plan): string[] {
  if (!plan.egress) return [];
  const variables = ownProxies(env);
  if (variables.length > 0) {
    const what = `sets ${variables.join(" and ")} itself, which is not changed`;
    return [`container ${name}: it ${what}; its requests to other servers do not go through the proxy`];
  }
  const hidden = [...PROXY_VARIABLES, ...DIRECT_VARIABLES].find((each) =>
    envFrom.some(({ prefix = "" }) => each.startsWith(prefix) && plainValue(env, each) === undefined),
  );
  return hidden === undefined
    ? []
    : [`container ${name}: envFrom is not checked; if it has ${hidden}, the mesh's value replaces it`];
}

/** The variables that the container sets to a proxy of its own, or whose value is not in the pod. */
function ownProxies(env: readonly EnvVar[]): string[] {
  return env
    .filter(({ name, value = "", valueFrom }) => {
      if (DIRECT_VARIABLES.includes(name)) return valueFrom !== undefined;
      return PROXY_VARIABLES.includes(name) && (valueFrom !== undefined || value !== PROXY_URL);
    })
    .map(({ name }) => name);
}

/**
 * What clients reach without the proxy: the mesh's proxy for the API server, on the loopback; the API
 * server's own addresses and names; and the Services of the cluster, among them the manager. A NetworkPolicy
 * is the means to limit calls inside the cluster.
 */
function directHosts({ settings }: Plan): string[] {
  const { kubernetesService, clusterDomain = DEFAULT_DOMAIN } = settings;
  const names = ["kubernetes", "kubernetes.default", ".svc", `.${clusterDomain}`];
  return ["localhost", "127.0.0.1", "::1", ...names, ...kubernetesService.ips];
}

function plainValue(env: readonly EnvVar[], name: string): string | undefined {
  return env.find((each) => each.name === name)?.value;
}
