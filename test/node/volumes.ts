// The volumes of one pod, as folders of the agent that containers mount. `sync` either updates every volume from API objects, or
// throws and keeps the last version. An emptyDir is created once and lives as long as the pod.
import { execFile } from "node:child_process";
import { chmodSync, chownSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { type VolumeFiles, writeVolume } from "./atomic-files.ts";
import { parseQuantity } from "./pod-fields.ts";
import type { NodePod, Volume } from "./pod-types.ts";
import { isMadeOfObjects, type VolumeSources, volumeFiles } from "./volume-files.ts";

const run = promisify(execFile);

export interface PodVolumes {
  /** The folder of a volume. @throws Error if the pod has no volume of this name */
  path(name: string): string;
  /** True if containers always mount it read-only. */
  isReadOnly(name: string): boolean;
  /** @throws Error with the kubelet's message and the volume's name */
  sync(pod: NodePod): Promise<void>;
  remove(): Promise<void>;
}

/** @param dir the parent folder of all volumes */
export function createPodVolumes(pod: NodePod, dir: string, sources: VolumeSources): PodVolumes {
  const written = new Map<string, string>();
  const mounted: string[] = [];
  const group = pod.spec.securityContext?.fsGroup;
  const volumes = new Map((pod.spec.volumes ?? []).map((volume) => [volume.name, volume]));
  const path = (name: string) => {
    if (!volumes.has(name)) throw new Error(`volume ${name} is not there`);
    return join(dir, name);
  };

  async function makeEmptyDir(volume: Volume): Promise<void> {
    if (written.has(volume.name)) return;
    const folder = path(volume.name);
    mkdirSync(folder, { recursive: true });
    if (volume.emptyDir?.medium === "Memory") {
      const { sizeLimit } = volume.emptyDir;
      const size = sizeLimit === undefined ? [] : ["-o", `size=${parseQuantity(sizeLimit)}`];
      await run("mount", ["-t", "tmpfs", ...size, "tmpfs", folder]);
      mounted.push(folder);
    }
    if (group !== undefined) chownSync(folder, 0, group);
    chmodSync(folder, group === undefined ? 0o777 : 0o2777);
    written.set(volume.name, "");
  }

  async function syncOne(volume: Volume, current: NodePod): Promise<void> {
    if (volume.emptyDir !== undefined) return makeEmptyDir(volume);
    if (!isMadeOfObjects(volume)) throw new Error("this kind of volume is not supported by the test node");
    const files = await volumeFiles(volume, current, sources);
    const content = fingerprint(files);
    if (written.get(volume.name) === content) return;
    mkdirSync(path(volume.name), { recursive: true });
    writeVolume(path(volume.name), files, group);
    written.set(volume.name, content);
  }

  return {
    path,
    isReadOnly: (name) => volumes.get(name)?.emptyDir === undefined,
    async sync(current) {
      for (const volume of volumes.values()) {
        await syncOne(volume, current).catch((cause: Error) => {
          throw new Error(`MountVolume.SetUp failed for volume "${volume.name}" : ${cause.message}`, { cause });
        });
      }
    },
    async remove() {
      for (const folder of mounted.splice(0)) await run("umount", [folder]);
    },
  };
}

function fingerprint(files: VolumeFiles): string {
  return JSON.stringify([...files].map(([path, { data, mode }]) => [path, mode, data.toString("base64")]));
}
