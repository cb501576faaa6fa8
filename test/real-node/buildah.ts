// buildah with a storage of its own in the user's cache, so that the machine's images are neither read nor changed. It needs no daemon.
import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { cacheDir } from "../support/build-cache.ts";

const TIMEOUT_MS = 15 * 60_000;

/** The variables that make buildah, and `npm run images`, use that storage. Steps of a build run in a chroot. */
export function buildahEnvironment(): NodeJS.ProcessEnv {
  const folder = join(cacheDir(), "node-images");
  mkdirSync(folder, { recursive: true });
  const config = join(folder, "storage.conf");
  const storage = { driver: "overlay", graphroot: join(folder, "storage"), runroot: join(folder, "run") };
  const lines = Object.entries(storage).map(([name, value]) => `${name} = ${JSON.stringify(value)}`);
  writeFileSync(config, `[storage]\n${lines.join("\n")}\n`);
  return { ...process.env, CONTAINERS_STORAGE_CONF: config, BUILDAH_ISOLATION: "chroot", BUILDAH_LAYERS: "true" };
}

/** Runs a program with that storage. Returns its output. @throws Error with its output */
export async function runBuilder(command: string, args: readonly string[], cwd: string): Promise<string> {
  const options = { cwd, env: buildahEnvironment(), maxBuffer: 64 * 1024 * 1024, timeout: TIMEOUT_MS };
  return promisify(execFile)(command, args, options).then(
    ({ stdout }) => stdout.trim(),
    (error: Error & { stdout?: string; stderr?: string }) => {
      throw new Error(`${error.message}\n${error.stdout ?? ""}${error.stderr ?? ""}`);
    },
  );
}

/** An image whose root file system is the folder. */
export async function imageOfFolder(folder: string, reference: string, config: readonly string[] = []): Promise<void> {
  const container = await runBuilder("buildah", ["from", "scratch"], folder);
  try {
    await runBuilder("buildah", ["add", "--quiet", container, folder, "/"], folder);
    if (config.length > 0) await runBuilder("buildah", ["config", ...config, container], folder);
    await runBuilder("buildah", ["commit", "--quiet", container, reference], folder);
  } finally {
    await runBuilder("buildah", ["rm", container], folder);
  }
}

/** Writes the image into a file that containerd can import. */
export async function exportImage(reference: string, file: string): Promise<void> {
  await runBuilder("buildah", ["push", "--quiet", reference, `docker-archive:${file}:${reference}`], "/");
}
