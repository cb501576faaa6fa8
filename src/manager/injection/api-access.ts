// The volumes through which the operator's containers get their service account. The token must be bound to
// the pod. The volume's own CA file gets the mesh's CA, so a container that another webhook adds later trusts
// it too.
import { CA_CONFIG_MAP } from "../../api/injected-pod.ts";
import { CLUSTER_CA_CONFIG_MAP, isOurs, SERVICE_ACCOUNT_DIR } from "./names.ts";
import { type Container, type PodSpec, theirContainers, type Volume, type VolumeSource } from "./pod-manifest.ts";

const CA_FILE = "ca.crt";

export function accessVolumes(spec: PodSpec): Volume[] {
  const mounted = new Set(theirContainers(spec).flatMap((each) => accessMounts(each)));
  return (spec.volumes ?? []).filter(({ name }) => mounted.has(name));
}

export function accessRefusals(spec: PodSpec): string[] {
  if (!spec.containers.some((each) => !isOurs(each) && accessMounts(each).length > 0)) {
    return [
      `no container mounts a service-account token at ${SERVICE_ACCOUNT_DIR}: leave automountServiceAccountToken unset, or mount a projected serviceAccountToken there`,
    ];
  }
  return accessVolumes(spec).flatMap((volume) => {
    if (volume.projected?.sources?.some(({ serviceAccountToken }) => serviceAccountToken !== undefined)) return [];
    const what = volume.secret === undefined ? "holds no projected token" : "is a Secret, whose token is not bound to the pod";
    return `volume ${volume.name} at ${SERVICE_ACCOUNT_DIR} ${what}: it would still work after the pod is gone; use a projected serviceAccountToken`;
  });
}

/** Warnings about mounts that replace a single file of the service account. */
export function accessWarnings(spec: PodSpec): string[] {
  return theirContainers(spec).flatMap(({ name, volumeMounts = [] }) =>
    volumeMounts
      .filter(({ mountPath }) => plainPath(mountPath).startsWith(`${SERVICE_ACCOUNT_DIR}/`))
      .map(({ mountPath }) => `container ${name}: ${mountPath} is not changed; a client that reads it may not trust the proxy`),
  );
}

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
  // The source includes all keys, which are known only for Kubernetes' own ConfigMap. In another one, the
  // mesh's CA replaces a key of the same name, because it is the last source.
  if (from.items === undefined) return from.name === CLUSTER_CA_CONFIG_MAP ? [] : [source];
  const items = from.items.filter(({ path }) => path !== CA_FILE);
  if (items.length === from.items.length) return [source];
  return items.length === 0 ? [] : [{ ...source, [kind]: { ...from, items } }];
}

function accessMounts({ volumeMounts = [] }: Container): string[] {
  return volumeMounts.filter(({ mountPath }) => plainPath(mountPath) === SERVICE_ACCOUNT_DIR).map(({ name }) => name);
}

// In most images /var/run is a link to /run, so both are the same folder.
function plainPath(mountPath: string): string {
  // A path can be as long as a request: the lookbehind starts only at the first slash of a run.
  return mountPath.replace(/(?<!\/)\/+$/, "").replace(/^\/run\//, "/var/run/");
}
