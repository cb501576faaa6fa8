// Results that tests build once for each state of the sources (Go programs, images, Python clients). The results are in the user's
// cache under the hash of their sources, so a fresh clone of the same sources finds them. Each build removes results that have not been
// used for some time.
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, utimesSync } from "node:fs";
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

/**
 * Builds a file or folder unless it exists. An interrupted build leaves no result, and of two builds at a time the first one counts.
 * @param make writes the result to the path that it is given
 * @throws Error with the end of the compiler's output
 */
export function buildOnce(result: string, make: (partial: string) => Promise<void>): Promise<void> {
  if (isBuilt(result)) return Promise.resolve();
  const running = building.get(result) ?? build(result, make).finally(() => building.delete(result));
  building.set(result, running);
  return running;
}

/** What this process builds now. Whoever asks meanwhile waits for the same build. */
const building = new Map<string, Promise<void>>();

async function build(result: string, make: (partial: string) => Promise<void>): Promise<void> {
  makeRoom();
  const partial = `${result}.${process.pid}`;
  process.stderr.write(`building ${result} (once for these sources)\n`);
  try {
    await make(partial);
    if (!existsSync(result)) renameSync(partial, result);
  } catch (error) {
    const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
    throw new Error(`building ${result}: ${(stdout + stderr).slice(-2_000) || error}`, { cause: error });
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
}
