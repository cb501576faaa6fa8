// Sets the environment variables by which clients find the API server and, if the pod asks for it, the egress
// proxy, in the operator's containers and init containers. Invariant: everything else of a container stays
// unchanged, even the order of its other variables.
import { egressWarnings, withEgressEnv } from "./egress-env.ts";
import { API_PORT, KUBECONFIG_DIR, KUBECONFIG_VOLUME } from "./names.ts";
import type { Plan } from "./plan.ts";
import type { Container, EnvVar, VolumeMount } from "./pod-manifest.ts";

const IN_CLUSTER = ["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "KUBERNETES_SERVICE_PORT_HTTPS"];
const KUBECONFIG = "KUBECONFIG";

/** The container with the variables of the plan's mode. */
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
