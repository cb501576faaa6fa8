// Small files that survive a crash of the process and of the node. Invariant: after `replaceFile` a restart
// reads the new content, and after `removeFile` it finds no file; a concurrent reader finds the old or the
// new content.
import { constants } from "node:fs";
import { mkdir, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { MeshError } from "./errors.ts";

/** Reads a file, but not through a link. @throws MeshError `STORED_FILE` if it has more than `maxBytes` */
export async function readBounded(path: string, maxBytes: number): Promise<string> {
  await using file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  const { size } = await file.stat();
  if (size > maxBytes) throw new MeshError("STORED_FILE", `reading ${path}: ${size} bytes are over ${maxBytes}`);
  return await file.readFile("utf8");
}

/** @param mode default: only the owner may read the file */
export async function replaceFile(path: string, text: string, mode = 0o600): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const temporaryPath = `${path}.tmp`;
  await rm(temporaryPath, { force: true });
  try {
    await writeSynced(temporaryPath, text, mode);
    await rename(temporaryPath, path);
  } catch (error) {
    await rm(temporaryPath, { force: true }).catch(() => undefined); // an incomplete file would use up the disk
    throw error;
  }
  await syncDirectory(dirname(path));
}

/** Creates an empty file, or empties an existing one. It works on a full disk too. */
export async function emptyFile(path: string): Promise<void> {
  const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW } = constants;
  await using file = await open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o600);
  await file.sync();
  await syncDirectory(dirname(path));
}

/** Does nothing if there is no file. */
export async function removeFile(path: string): Promise<void> {
  try {
    await rm(path, { force: true });
    await syncDirectory(dirname(path));
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

/** True if there is no such file or no such folder. */
export function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
}

async function writeSynced(path: string, text: string, mode: number): Promise<void> {
  await using file = await open(path, "wx", mode);
  await file.writeFile(text);
  await file.sync();
}

async function syncDirectory(path: string): Promise<void> {
  await using directory = await open(path, constants.O_RDONLY);
  await directory.sync();
}
