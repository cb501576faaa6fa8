// Small files that must survive a crash of the process and of the node. Invariant: after `replaceFile` the new content is what
// a restart reads, after `removeFile` nothing is; in between a reader finds the old content or the new one, never a part.
// Used for what the proxy keeps in its data folder.
import { constants } from "node:fs";
import { mkdir, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { MeshError } from "./errors.ts";

/** Reads a file, not through a link. @throws MeshError `STORED_FILE` if it is over the bound, in bytes */
export async function readBounded(path: string, maxBytes: number): Promise<string> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const { size } = await file.stat();
    if (size > maxBytes) throw new MeshError("STORED_FILE", `reading ${path}: ${size} bytes are over ${maxBytes}`);
    return await file.readFile("utf8");
  } finally {
    await file.close();
  }
}

/** Writes a file in place of what was there. @param mode default: only the owner may read it */
export async function replaceFile(path: string, text: string, mode = 0o600): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const temporary = `${path}.tmp`;
  await rm(temporary, { force: true });
  try {
    await writeSynced(temporary, text, mode);
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined); // half a file takes room that others need
    throw error;
  }
  await syncDirectory(dirname(path));
}

/** Leaves a file with nothing in it, whatever was there. A full disk takes that as well. */
export async function emptyFile(path: string, mode = 0o600): Promise<void> {
  const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW } = constants;
  const file = await open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, mode);
  try {
    await file.sync();
  } finally {
    await file.close();
  }
  await syncDirectory(dirname(path));
}

/** Removes a file for good. Nothing happens if there is none. */
export async function removeFile(path: string): Promise<void> {
  try {
    await rm(path, { force: true });
    await syncDirectory(dirname(path));
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

export function isErrno(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}

/** There is no such file, and be it that there is no such folder. */
export function isMissing(error: unknown): boolean {
  return isErrno(error, "ENOENT") || isErrno(error, "ENOTDIR");
}

async function writeSynced(path: string, text: string, mode: number): Promise<void> {
  const file = await open(path, "wx", mode);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, constants.O_RDONLY);
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
