// The files of a ConfigMap, Secret or projected volume, replaced in one step: the names link through "..data" to the folder of
// one version, and one rename changes it. A reader that opens by name sees files of one version.
import {
  chownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";

export interface VolumeFile {
  readonly data: Buffer;
  readonly mode: number;
}

/** By path in the volume. */
export type VolumeFiles = ReadonlyMap<string, VolumeFile>;

let versions = 0;

/** Replaces all files by these. */
export function writeVolume(dir: string, files: VolumeFiles, group: number | undefined): void {
  const version = `..${process.pid}_${++versions}`;
  mkdirSync(join(dir, version), { recursive: true });
  for (const [path, { data, mode }] of files) {
    const file = join(dir, version, path);
    mkdirSync(dirname(file), { recursive: true });
    // The pod's group may read what the owner may read.
    writeFileSync(file, data, { mode: group === undefined ? mode : mode | ((mode & 0o400) >> 3) });
    if (group !== undefined) chownSync(file, 0, group);
  }
  const last = existing(join(dir, "..data"));
  symlinkSync(version, join(dir, "..data_new"));
  renameSync(join(dir, "..data_new"), join(dir, "..data"));
  const names = new Set([...files.keys()].map((path) => path.split("/")[0] ?? ""));
  for (const name of names) if (existing(join(dir, name)) === undefined) symlinkSync(`..data/${name}`, join(dir, name));
  for (const name of readdirSync(dir)) if (!name.startsWith("..") && !names.has(name)) rmSync(join(dir, name));
  if (last !== undefined) rmSync(join(dir, last), { recursive: true });
}

function existing(link: string): string | undefined {
  return lstatSync(link, { throwIfNoEntry: false }) === undefined ? undefined : readlinkSync(link);
}
