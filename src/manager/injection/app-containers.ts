// The operator's containers and init containers: the environment by which client libraries find the API server. Invariant: everything else
// of a container, and the order of its other variables, stays as it is.
import { API_PORT, KUBECONFIG_DIR, KUBECONFIG_VOLUME } from "./names.ts";
import type { Plan } from "./plan.ts";
import type { Container, EnvVar, VolumeMount } from "./pod-manifest.ts";

const IN_CLUSTER = ["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "KUBERNETES_SERVICE_PORT_HTTPS"];
const KUBECONFIG = "KUBECONFIG";

/** The container, led to the proxy as the plan says. */
export function interceptContainer(container: Container, { mode }: Plan): Container {
  const ours = interceptingEnv(mode);
  const taken = takenNames(mode);
  // In front, since a later variable may refer to them as $(KUBERNETES_SERVICE_HOST).
  const env = [...ours, ...(container.env ?? []).filter(({ name }) => !taken.includes(name))];
  const intercepted = env.length === 0 && container.env === undefined ? container : { ...container, env };
  return mode === "kubeconfig" ? { ...intercepted, volumeMounts: withKubeconfig(container.volumeMounts) } : intercepted;
}

/** What of a container's own ways to the API server is set aside, or may lead past the proxy. */
export function containerWarnings(container: Container, { mode }: Plan): string[] {
  const { name, env = [], envFrom = [], command = [], args = [] } = container;
  const ours = interceptingEnv(mode);
  const set = env.filter((each) => !ours.some((our) => our.name === each.name && our.value === each.value));
  const replaced = new Set(set.map((each) => each.name).filter((each) => takenNames(mode).includes(each)));
  const flags = [...command, ...args].flatMap((word) => /^(--?(?:kubeconfig|master))(?:=.|$)/.exec(word)?.[1] ?? []);
  // Only what `env` does not set comes from there; what it holds is not known here.
  const hidden = [KUBECONFIG, ...IN_CLUSTER].filter((each) => ![...ours, ...env].some((set) => set.name === each));
  const mayHide = hidden.find((each) => envFrom.some(({ prefix = "" }) => each.startsWith(prefix)));
  return [
    ...[...replaced].map((each) => `container ${name}: the mesh's value takes the place of ${each}`),
    ...(mode !== "kubeconfig" && set.some((each) => each.name === KUBECONFIG)
      ? [`container ${name}: KUBECONFIG is left alone; what it names may lead past the proxy`]
      : []),
    ...(mayHide === undefined ? [] : [`container ${name}: envFrom is not looked into; a ${mayHide} in it leads past the proxy`]),
    ...new Set(flags.map((flag) => `container ${name}: ${flag} is left alone; it may lead past the proxy`)),
  ];
}

function interceptingEnv(mode: Plan["mode"]): readonly EnvVar[] {
  if (mode === "iptables") return [];
  const values = ["127.0.0.1", `${API_PORT}`, `${API_PORT}`];
  const env = IN_CLUSTER.map((name, index) => ({ name, value: values[index] ?? "" }));
  return mode === "kubeconfig" ? [...env, { name: KUBECONFIG, value: `${KUBECONFIG_DIR}/kubeconfig` }] : env;
}

// With iptables the kubelet's values are right; any other would lead past the redirection.
function takenNames(mode: Plan["mode"]): readonly string[] {
  return mode === "kubeconfig" ? [...IN_CLUSTER, KUBECONFIG] : IN_CLUSTER;
}

function withKubeconfig(mounts: readonly VolumeMount[] = []): VolumeMount[] {
  const mount = { name: KUBECONFIG_VOLUME, mountPath: KUBECONFIG_DIR, readOnly: true };
  return mounts.some(({ name }) => name === KUBECONFIG_VOLUME) ? [...mounts] : [...mounts, mount];
}
