// Builds the injected pod from a plan without refusals. Invariant: changes by others to the mesh's containers
// stay, except in the fields that the proxy needs, so a second build changes nothing.
import type { InterceptMode } from "../../api/annotations.ts";
import { CA_CONFIG_MAP, INJECTED_LABEL, IPTABLES_CONTAINER } from "../../api/injected-pod.ts";
import { SHARD_INJECTED } from "../../api/sharding-keys.ts";
import type { Labels } from "../../kube/label-selector.ts";
import { TOKEN_AUDIENCE } from "../identity/token-reviewer.ts";
import { accessVolumes, withMeshCa } from "./api-access.ts";
import { interceptContainer } from "./app-containers.ts";
import { withHostAliases } from "./host-aliases.ts";
import { iptablesContainer, isMeshSetting, proxyContainer, refreshedIptables } from "./mesh-containers.ts";
import { CLUSTER_CA_CONFIG_MAP, CLUSTER_CA_VOLUME, DATA_VOLUME, IDENTITY_VOLUME, isOurs, KUBECONFIG_VOLUME } from "./names.ts";
import type { Plan } from "./plan.ts";
import type { Container, PodManifest, PodSpec, Volume } from "./pod-manifest.ts";
import { withMovedNames } from "./webhook-port.ts";

const DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container";

/** @param shard the shard of the pod; undefined: none */
export function buildPod(pod: PodManifest, app: string, shard: string | undefined, plan: Plan): PodManifest {
  const { metadata, spec } = pod;
  const first = spec.containers.find((each) => !isOurs(each))?.name ?? "";
  return {
    ...pod,
    metadata: {
      ...metadata,
      labels: injectedLabels(metadata.labels, app, shard),
      annotations: { [DEFAULT_CONTAINER]: first, ...metadata.annotations },
    },
    spec: buildSpec(spec, plan),
  };
}

// A template that was copied from a pod may have the label of another shard.
function injectedLabels({ [SHARD_INJECTED]: _, ...labels }: Labels = {}, app: string, shard: string | undefined): Labels {
  return { ...labels, [INJECTED_LABEL]: app, ...(shard === undefined ? {} : { [SHARD_INJECTED]: shard }) };
}

function buildSpec(spec: PodSpec, plan: Plan): PodSpec {
  const theirs = (each: Container) => (isOurs(each) ? each : interceptContainer(each, plan));
  const { mode, webhook } = plan;
  const withWebhook = (each: Container) =>
    webhook?.kind === "intercepted" && mode !== "iptables" && !isOurs(each) ? withMovedNames(each, webhook.port) : each;
  const proxy = proxyContainer(plan);
  const init = withContainers((spec.initContainers ?? []).map(theirs), [
    ...(plan.mode === "iptables" ? [iptablesContainer(plan)] : []),
    ...(plan.native ? [proxy] : []),
  ]);
  const built: PodSpec = {
    ...spec,
    ...(init.length === 0 ? {} : { initContainers: init }),
    containers: withContainers(spec.containers.map(theirs).map(withWebhook), plan.native ? [] : [proxy]),
    volumes: withVolumes(spec, plan),
    ...pullSecrets(spec, plan),
  };
  return withHostAliases(built, plan);
}

// New containers start before all others. Existing ones keep their places, possibly after another mesh's.
function withContainers(containers: readonly Container[], wanted: readonly Container[]): Container[] {
  const missing = wanted.filter(({ name }) => !containers.some((each) => each.name === name));
  const present = containers.map((each) => {
    const ours = wanted.find(({ name }) => name === each.name);
    if (ours === undefined) return each;
    return ours.name === IPTABLES_CONTAINER ? refreshedIptables(each, ours) : refreshed(each, ours);
  });
  return [...missing, ...present];
}

/** The existing proxy with the mesh's program, user and settings. Its other fields stay. */
function refreshed(existing: Container, ours: Container): Container {
  const { command: _, args: __, envFrom: ___, workingDir: ____, ...others } = existing;
  const names = new Set(ours.env?.map(({ name }) => name));
  const paths = new Set(ours.volumeMounts?.map(({ mountPath }) => mountPath));
  const env = [...(ours.env ?? []), ...(existing.env ?? []).filter(({ name }) => !names.has(name) && !isMeshSetting(name))];
  const mounts = (existing.volumeMounts ?? []).filter(({ mountPath }) => !paths.has(mountPath));
  const { lifecycle, restartPolicy, securityContext } = ours;
  return {
    ...ours,
    ...others,
    ...(lifecycle && { lifecycle }),
    ...(restartPolicy && { restartPolicy }),
    ...(securityContext && { securityContext }),
    env,
    volumeMounts: [...(ours.volumeMounts ?? []), ...mounts],
  };
}

function withVolumes(spec: PodSpec, { mode }: Plan): Volume[] {
  const access = new Set(accessVolumes(spec).map(({ name }) => name));
  const theirs = (spec.volumes ?? []).map((volume) => (access.has(volume.name) ? withMeshCa(volume) : volume));
  return [...theirs, ...ourVolumes(mode).filter(({ name }) => !theirs.some((each) => each.name === name))];
}

const FILE_MODE = 0o644;
const TOKEN_SECONDS = 3600;

/** They have all defaults of the API server, so that a second injection of a stored pod changes nothing. */
export function ourVolumes(mode: InterceptMode): Volume[] {
  const identity: Volume = {
    name: IDENTITY_VOLUME,
    projected: {
      defaultMode: FILE_MODE,
      sources: [
        { serviceAccountToken: { audience: TOKEN_AUDIENCE, expirationSeconds: TOKEN_SECONDS, path: "token" } },
        { configMap: { name: CA_CONFIG_MAP, items: [{ key: "mesh.crt", path: "mesh.crt" }] } },
      ],
    },
  };
  const data: Volume = { name: DATA_VOLUME, emptyDir: { medium: "Memory", sizeLimit: "32Mi" } };
  return [
    identity,
    data,
    configMapVolume(CLUSTER_CA_VOLUME, CLUSTER_CA_CONFIG_MAP, "ca.crt"),
    ...(mode === "kubeconfig" ? [configMapVolume(KUBECONFIG_VOLUME, CA_CONFIG_MAP, "kubeconfig")] : []),
  ];
}

function configMapVolume(name: string, configMap: string, key: string): Volume {
  return { name, configMap: { name: configMap, defaultMode: FILE_MODE, items: [{ key, path: key }] } };
}

function pullSecrets(spec: PodSpec, { settings }: Plan): Pick<PodSpec, "imagePullSecrets"> {
  const present = spec.imagePullSecrets ?? [];
  const missing = (settings.imagePullSecrets ?? []).filter((name) => !present.some((each) => each.name === name));
  return missing.length === 0 ? {} : { imagePullSecrets: [...present, ...missing.map((name) => ({ name }))] };
}
