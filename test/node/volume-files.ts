// The files of a volume that comes from API objects: one function from (volume, pod, objects, tokens) to files. Pure, except for
// the tokens, which the caller requests. A missing required object is an error with the kubelet's message.
import type { VolumeFile, VolumeFiles } from "./atomic-files.ts";
import type { KeyedObjects } from "./container-env.ts";
import { fieldValue, type PodAddresses, resourceValue } from "./pod-fields.ts";
import type { ConfigMapSource, DownwardItem, Keyed, NodePod, ProjectedSource, Volume } from "./pod-types.ts";

export interface VolumeSources extends KeyedObjects {
  readonly addresses: PodAddresses;
  /** A token of the pod's service account, cached and renewed in time. */
  token(audience: string | undefined, expirationSeconds: number): Promise<string>;
}

/** True for volumes from API objects, which are written again when the objects change. */
export function isMadeOfObjects({ configMap, secret, downwardAPI, projected }: Volume): boolean {
  return [configMap, secret, downwardAPI, projected].some((source) => source !== undefined);
}

/** @throws Error if a required object is missing */
export async function volumeFiles(volume: Volume, pod: NodePod, sources: VolumeSources): Promise<VolumeFiles> {
  const { configMap, secret, downwardAPI, projected } = volume;
  const mode = (configMap ?? secret ?? downwardAPI ?? projected)?.defaultMode ?? 0o644;
  const files = new Map<string, VolumeFile>();
  for (const part of projected?.sources ?? [
    {
      ...(configMap === undefined ? {} : { configMap }),
      ...(secret === undefined ? {} : { secret: { ...secret, name: secret.secretName ?? "" } }),
      ...(downwardAPI === undefined ? {} : { downwardAPI }),
    },
  ]) {
    for (const [path, file] of await filesOf(part, pod, sources, mode)) files.set(path, file);
  }
  return files;
}

async function filesOf(source: ProjectedSource, pod: NodePod, sources: VolumeSources, mode: number): Promise<VolumeFiles> {
  const files = new Map<string, VolumeFile>();
  const { configMap, secret, downwardAPI, serviceAccountToken } = source;
  const add = (more: VolumeFiles) => {
    for (const [path, file] of more) files.set(path, file);
  };
  if (configMap !== undefined) add(keyedFiles("configmap", configMap, sources.configMap(configMap.name ?? ""), mode));
  if (secret !== undefined) add(keyedFiles("secret", secret, sources.secret(secret.name ?? ""), mode));
  for (const item of downwardAPI?.items ?? []) {
    files.set(item.path, { data: Buffer.from(downwardValue(item, pod, sources)), mode: item.mode ?? mode });
  }
  if (serviceAccountToken !== undefined) {
    const { audience, expirationSeconds = 3600, path } = serviceAccountToken;
    files.set(path, { data: Buffer.from(await sources.token(audience, expirationSeconds)), mode });
  }
  return files;
}

function keyedFiles(
  kind: "configmap" | "secret",
  { name = "", items, optional = false }: ConfigMapSource,
  object: Keyed | undefined,
  mode: number,
): VolumeFiles {
  if (object === undefined) {
    if (optional) return new Map();
    throw new Error(`${kind} "${name}" not found`);
  }
  const { data = {}, binaryData = {} } = object;
  const text = Object.entries(data).map(
    ([key, value]) => [key, Buffer.from(value, kind === "secret" ? "base64" : "utf8")] as const,
  );
  const bytes = Object.entries(binaryData).map(([key, value]) => [key, Buffer.from(value, "base64")] as const);
  const all = new Map([...text, ...bytes]);
  if (items === undefined) return new Map([...all].map(([key, content]) => [key, { data: content, mode }]));
  const files = new Map<string, VolumeFile>();
  for (const item of items) {
    const content = all.get(item.key);
    if (content !== undefined) files.set(item.path, { data: content, mode: item.mode ?? mode });
    else if (!optional) throw new Error(`references non-existent ${kind} key: ${item.key}`);
  }
  return files;
}

function downwardValue(item: DownwardItem, pod: NodePod, { addresses }: VolumeSources): string {
  if (item.fieldRef !== undefined) return fieldValue(pod, item.fieldRef, addresses);
  return item.resourceFieldRef === undefined ? "" : resourceValue(pod, undefined, item.resourceFieldRef);
}
