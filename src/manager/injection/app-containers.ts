// Sets the variables by which the operator's clients find the API server and, on request, the proxy for other
// servers. Invariants: everything else in a container stays, even the order of its variables; a container
// with a proxy of its own keeps it, with a warning; calls inside the cluster use no forward proxy.
import { API_PORT } from "../../api/injected-pod.ts";
import { EGRESS_PORT, KUBECONFIG_DIR, KUBECONFIG_VOLUME } from "./names.ts";
import type { Plan } from "./plan.ts";
import type { Container, EnvVar, VolumeMount } from "./pod-manifest.ts";

const IN_CLUSTER = ["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "KUBERNETES_SERVICE_PORT_HTTPS"];
const KUBECONFIG = "KUBECONFIG";

export function interceptContainer(container: Container, plan: Plan): Container {
  const { mode } = plan;
  const ours = interceptingEnv(mode);
  const meshNames = takenNames(mode);
  // First in the list, because a later variable may refer to them as $(KUBERNETES_SERVICE_HOST).
  const env = withEgressEnv([...ours, ...(container.env ?? []).filter(({ name }) => !meshNames.includes(name))], plan);
  const intercepted = env.length === 0 && container.env === undefined ? container : { ...container, env: [...env] };
  return mode === "kubeconfig" ? { ...intercepted, volumeMounts: withKubeconfig(container.volumeMounts) } : intercepted;
}

/** Warnings about a container's own settings that the mesh replaces, or that may bypass the proxy. */
export function containerWarnings(container: Container, plan: Plan): string[] {
  const { mode } = plan;
  const { name, env = [], envFrom = [], command = [], args = [] } = container;
  const ours = interceptingEnv(mode);
  const foreign = env.filter((each) => !ours.some((our) => our.name === each.name && our.value === each.value));
  const replaced = new Set(foreign.map((each) => each.name).filter((each) => takenNames(mode).includes(each)));
  const flags = [...command, ...args].flatMap((word) => /^(--?(?:kubeconfig|master))(?:=.|$)/.exec(word)?.[1] ?? []);
  // `envFrom` sets only variables that `env` does not set. Its content is not known here.
  const hidden = [KUBECONFIG, ...IN_CLUSTER].filter((each) => ![...ours, ...env].some((variable) => variable.name === each));
  const mayHide = hidden.find((each) => envFrom.some(({ prefix = "" }) => each.startsWith(prefix)));
  return [
    ...[...replaced].map((each) => `container ${name}: the mesh's value replaces ${each}`),
    ...(mode !== "kubeconfig" && foreign.some((each) => each.name === KUBECONFIG)
      ? [`container ${name}: KUBECONFIG is not changed; its file may bypass the proxy`]
      : []),
    ...(mayHide === undefined ? [] : [`container ${name}: envFrom is not checked; a ${mayHide} in it bypasses the proxy`]),
    ...egressWarnings(container, plan),
    ...new Set(flags.map((flag) => `container ${name}: ${flag} is not changed; it may bypass the proxy`)),
  ];
}

function interceptingEnv(mode: Plan["mode"]): readonly EnvVar[] {
  if (mode === "iptables") return [];
  const values = ["127.0.0.1", `${API_PORT}`, `${API_PORT}`];
  const env = IN_CLUSTER.map((name, index) => ({ name, value: values[index] ?? "" }));
  return mode === "kubeconfig" ? [...env, { name: KUBECONFIG, value: `${KUBECONFIG_DIR}/kubeconfig` }] : env;
}

// In iptables mode the kubelet's values are correct. Other values would bypass the redirection.
function takenNames(mode: Plan["mode"]): readonly string[] {
  return mode === "kubeconfig" ? [...IN_CLUSTER, KUBECONFIG] : IN_CLUSTER;
}

function withKubeconfig(mounts: readonly VolumeMount[] = []): VolumeMount[] {
  const mount = { name: KUBECONFIG_VOLUME, mountPath: KUBECONFIG_DIR, readOnly: true };
  return mounts.some(({ name }) => name === KUBECONFIG_VOLUME) ? [...mounts] : [...mounts, mount];
}

/** curl reads only the lower-case `http_proxy`; most other clients read both cases of each. */
const PROXY_VARIABLES = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];
const DIRECT_VARIABLES = ["NO_PROXY", "no_proxy"];
/** The limit for all containers of a pod together, because each host is compared. */
const MAX_DIRECT_CHARS = 65_536;
const PROXY_URL = `http://127.0.0.1:${EGRESS_PORT}`;
const DEFAULT_DOMAIN = "cluster.local";

function withEgressEnv(env: readonly EnvVar[], plan: Plan): readonly EnvVar[] {
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

/** The reason to refuse the containers because of their own NO_PROXY, if there is one. */
export function egressRefusal(containers: readonly Container[], plan: Plan): string | undefined {
  if (!plan.egress) return undefined;
  const lengths = containers.flatMap(({ env = [] }) => DIRECT_VARIABLES.map((name) => plainValue(env, name)?.length ?? 0));
  const chars = lengths.reduce((sum, length) => sum + length, 0);
  if (chars <= MAX_DIRECT_CHARS) return undefined;
  return `NO_PROXY and no_proxy of all containers have ${chars} characters together, but at most ${MAX_DIRECT_CHARS} are allowed`;
}

function egressWarnings({ name, env = [], envFrom = [] }: Container, plan: Plan): string[] {
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

/** What clients reach without the forward proxy: the loopback, the API server and the cluster's Services. */
function directHosts({ settings }: Plan): string[] {
  const { kubernetesService, clusterDomain = DEFAULT_DOMAIN } = settings;
  const names = ["kubernetes", "kubernetes.default", ".svc", `.${clusterDomain}`];
  return ["localhost", "127.0.0.1", "::1", ...names, ...kubernetesService.ips];
}

function plainValue(env: readonly EnvVar[], name: string): string | undefined {
  return env.find((each) => each.name === name)?.value;
}
