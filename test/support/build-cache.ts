// Results that tests build once for each state of the sources (Go programs, images, Python clients). The results are in the user's
// cache under the hash of their sources, so a fresh clone of the same sources finds them. Each build removes results that have not been
// used for some time.
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, utimesSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

const HOUR_MS = 60 * 60_000;
const KEEP_MS = 72 * HOUR_MS;
/** Each edit of a source makes another image, of up to 120 MB, within seconds. */
const KEEP_IMAGE_MS = 6 * HOUR_MS;

/** The folder of all results. */
export function cacheDir(): string {
  return join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "ctrlmesh");
}

/** True if the result exists. The call counts as a use. */
export function isBuilt(path: string): boolean {
  if (!existsSync(path)) return false;
  const now = new Date();
  utimesSync(path, now, now);
  return true;
}

/** Prepares a build: creates the folder and removes old results. */
export function makeRoom(): void {
  mkdirSync(cacheDir(), { recursive: true });
  for (const name of readdirSync(cacheDir())) {
    const path = join(cacheDir(), name);
    const ageMs = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0);
    if (ageMs > (name.startsWith("image-") ? KEEP_IMAGE_MS : KEEP_MS)) rmSync(path, { force: true, recursive: true });
  }
}
