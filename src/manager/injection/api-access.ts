// The volumes through which the operator's containers get their service account: the token has to be bound to the pod, and the CA is the
// mesh's beside the cluster's. The volume is changed where it stands: a container that another webhook adds later, and that Kubernetes'
// own admission gives the same volume, has the right CA too.

import type { Refusal } from "./injection.ts";
import { CA_CONFIG_MAP, CLUSTER_CA_CONFIG_MAP, OUR_CONTAINERS, SERVICE_ACCOUNT_DIR } from "./names.ts";
import type { Container, PodSpec, Volume, VolumeSource } from "./pod-manifest.ts";

const CA_FILE = "ca.crt";

/** The volumes that the pod's own containers mount as their service account. */
export function accessVolumes(spec: PodSpec): Volume[] {
  const mounted = new Set(theirContainers(spec).flatMap((each) => accessMounts(each)));
  return (spec.volumes ?? []).filter(({ name }) => mounted.has(name));
}

/** Why the pod's access to the API server is none that the mesh can stand for. */
export function accessRefusals(spec: PodSpec): Refusal[] {
  if (!spec.containers.some((each) => !OUR_CONTAINERS.includes(each.name) && accessMounts(each).length > 0)) {
    const message = `no container mounts a service-account token at ${SERVICE_ACCOUNT_DIR}: leave automountServiceAccountToken unset, or mount a projected serviceAccountToken there`;
    return [{ reason: "NoServiceAccountToken", message }];
  }
  return accessVolumes(spec).flatMap((volume): Refusal[] => {
    if (volume.projected?.sources?.some(({ serviceAccountToken }) => serviceAccountToken !== undefined)) return [];
    const what = volume.secret === undefined ? "holds no projected token" : "is a Secret, whose token is not bound to the pod";
    const why = "it would go on working after the pod is gone";
    const message = `volume ${volume.name} at ${SERVICE_ACCOUNT_DIR} ${what}: ${why}; use a projected serviceAccountToken`;
    return [{ reason: "UnboundToken", message }];
  });
}

/** Mounts that put a file of their own over one of the service account's. */
export function accessWarnings(spec: PodSpec): string[] {
  return theirContainers(spec).flatMap(({ name, volumeMounts = [] }) =>
    volumeMounts
      .filter(({ mountPath }) => plainPath(mountPath).startsWith(`${SERVICE_ACCOUNT_DIR}/`))
      .map(({ mountPath }) => `container ${name}: ${mountPath} is left alone; the proxy may not be trusted through it`),
  );
}

/** The volume with the mesh's CA bundle in the place of the cluster's CA. */
export function withMeshCa(volume: Volume): Volume {
  const sources = volume.projected?.sources ?? [];
  const bundle = { configMap: { name: CA_CONFIG_MAP, items: [{ key: CA_FILE, path: CA_FILE }] } };
  return { ...volume, projected: { ...volume.projected, sources: [...sources.flatMap(withoutCa), bundle] } };
}

function withoutCa(source: VolumeSource): VolumeSource[] {
  if (source.clusterTrustBundle?.path === CA_FILE) return [];
  const kind = source.configMap === undefined ? "secret" : "configMap";
  const from = source[kind];
  if (from === undefined) return [source];
  // All keys of it: only of Kubernetes' own ConfigMap is it known which they are. Of the others ours, which is the last, wins.
  if (from.items === undefined) return from.name === CLUSTER_CA_CONFIG_MAP ? [] : [source];
  const items = from.items.filter(({ path }) => path !== CA_FILE);
  if (items.length === from.items.length) return [source];
  return items.length === 0 ? [] : [{ ...source, [kind]: { ...from, items } }];
}

function theirContainers({ containers, initContainers = [] }: PodSpec): Container[] {
  return [...initContainers, ...containers].filter(({ name }) => !OUR_CONTAINERS.includes(name));
}

function accessMounts({ volumeMounts = [] }: Container): string[] {
  return volumeMounts.filter(({ mountPath }) => isAccessPath(mountPath)).map(({ name }) => name);
}

function isAccessPath(mountPath: string): boolean {
  return plainPath(mountPath) === SERVICE_ACCOUNT_DIR;
}

// In most images /var/run is a link to /run: both are one folder.
function plainPath(mountPath: string): string {
  // A run of slashes is looked at from its first one only: a path may be as long as a request, and anybody's.
  return mountPath.replace(/(?<!\/)\/+$/, "").replace(/^\/run\//, "/var/run/");
}
