// What tests build once for each state of its sources (Go programs, images, Python clients): it lies in the user's cache under the hash of
// what it is made of, so that a fresh clone of the same sources finds it. Invariant: what nobody has asked for in a while is removed by
// the next build.
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, utimesSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

const HOUR_MS = 60 * 60_000;
const KEEP_MS = 72 * HOUR_MS;
/** Each edit of a source makes another image, of up to 120 MB, in seconds. */
const KEEP_IMAGE_MS = 6 * HOUR_MS;

/** The folder that built things are kept in. */
export function cacheDir(): string {
  return join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "ctrlmesh");
}

/** True if it is there; it counts as asked for then. */
export function isBuilt(path: string): boolean {
  if (!existsSync(path)) return false;
  const now = new Date();
  utimesSync(path, now, now);
  return true;
}

/** Before something is built: there is a folder for it, and what is old makes room. */
export function makeRoom(): void {
  mkdirSync(cacheDir(), { recursive: true });
  for (const name of readdirSync(cacheDir())) {
    const path = join(cacheDir(), name);
    const ageMs = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0);
    if (ageMs > (name.startsWith("image-") ? KEEP_IMAGE_MS : KEEP_MS)) rmSync(path, { force: true, recursive: true });
  }
}
