// The reasons to refuse a pod that cannot be injected. Each message says what is wrong and what to do.
import { type Annotations, annotationKey, annotationValue } from "../../api/annotations.ts";
import { API_PORT, HEALTH_PORT, PROXY_CONTAINER } from "../../api/injected-pod.ts";
import { podAnnotationProblems } from "../../api/pod-annotations.ts";
import { formatProblem } from "../../api/problems.ts";
import { isDeepEqual } from "../../runtime/merge-patch.ts";
import { accessRefusals } from "./api-access.ts";
import { egressRefusal } from "./app-containers.ts";
import { isIptablesContainer, isProxyContainer, isReservedEnv } from "./mesh-containers.ts";
import { ALIAS_PORT, EGRESS_PORT, isOurs, PROXY_UID, WEBHOOK_PORT } from "./names.ts";
import type { Plan } from "./plan.ts";
import { type Container, containersOf, type PodSpec, theirContainers, type Volume } from "./pod-manifest.ts";
import { proxiedServer } from "./webhook-port.ts";

export function annotationRefusals(annotations: Annotations | undefined): string[] {
  const problems = podAnnotationProblems(annotations, isReservedEnv).map(formatProblem);
  if (annotationValue(annotations, "inject") !== "false" || problems.length > 0) return problems;
  return [
    `${annotationKey("inject")} is "false", but a pod of an app without a proxy would own every namespace and stop every rollout; let the app not select it instead`,
  ];
}

/** @param volumes those that the plan adds */
export function specRefusals(spec: PodSpec, plan: Plan, volumes: readonly Volume[]): string[] {
  return [
    ...nodeRefusals(spec),
    ...accessRefusals(spec),
    ...portRefusals(spec, plan),
    ...nameRefusals(spec, plan, volumes),
    ...iptablesRefusals(spec, plan),
    ...[egressRefusal(containersOf(spec), plan)].filter((problem) => problem !== undefined),
  ];
}

function* nodeRefusals({ hostNetwork, os, nodeSelector }: PodSpec): Iterable<string> {
  if (hostNetwork === true) {
    const why = "its proxy would listen on the node's own loopback, for every process there";
    yield `spec.hostNetwork is true: ${why}; remove hostNetwork`;
  }
  if (os?.name === "windows" || nodeSelector?.["kubernetes.io/os"] === "windows")
    yield "it runs on Windows, for which there is no proxy";
}

function portRefusals(spec: PodSpec, { hostAliases, egress }: Plan): string[] {
  const taken: Readonly<Record<number, string>> = {
    [HEALTH_PORT]: "health and metrics",
    [API_PORT]: "the API server",
    // An injected pod declares it, with the names of the operator's port.
    ...(proxiedServer(spec) === undefined ? { [WEBHOOK_PORT]: "admission webhooks" } : {}),
    ...(hostAliases ? { [ALIAS_PORT]: "host aliases" } : {}),
    ...(egress ? { [EGRESS_PORT]: "requests to other servers" } : {}),
  };
  return theirContainers(spec).flatMap(({ name, ports = [] }) =>
    ports
      .filter(({ containerPort, protocol = "TCP" }) => protocol === "TCP" && taken[containerPort] !== undefined)
      .map(
        ({ containerPort }) =>
          `container ${name} declares port ${containerPort}, which the proxy needs for ${taken[containerPort]}`,
      ),
  );
}

function nameRefusals(
  { containers, initContainers = [], volumes: theirs = [] }: PodSpec,
  plan: Plan,
  volumes: readonly Volume[],
) {
  const isStranger = (container: Container, isInit: boolean) => {
    if (!isOurs(container)) return false;
    if (container.name === PROXY_CONTAINER) return isInit !== plan.native || !isProxyContainer(container);
    return !isInit || plan.mode !== "iptables" || !isIptablesContainer(container);
  };
  const strangers = [
    ...initContainers.filter((each) => isStranger(each, true)),
    ...containers.filter((each) => isStranger(each, false)),
  ].map(({ name }) => `container ${name} has a name of the mesh and differs from what the mesh adds; remove or rename it`);
  const others = volumes
    .filter((ours) => theirs.some((each) => each.name === ours.name && !isDeepEqual(each, ours)))
    .map(({ name }) => `volume ${name} has a name of the mesh and differs from what the mesh adds; remove or rename it`);
  return [...strangers, ...others];
}

// The redirection distinguishes the proxy's connections from the operator's by their user.
function* iptablesRefusals(spec: PodSpec, { mode, settings }: Plan): Iterable<string> {
  if (mode !== "iptables") return;
  if (settings.kubernetesService.ips.length === 0)
    yield "iptables mode needs the addresses of the Service default/kubernetes, which the manager has not seen yet";
  for (const { name, securityContext } of theirContainers(spec)) {
    if ((securityContext?.runAsUser ?? spec.securityContext?.runAsUser) !== PROXY_UID) continue;
    yield `container ${name} runs as user ${PROXY_UID}, which is the proxy's user and bypasses the redirection; use another user`;
  }
}
