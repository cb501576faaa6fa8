// Builds the Go programs of the tests on demand, once for each state of their sources: the binary lies in the user's cache
// under the hash of its folder, so a fresh clone of the same sources finds it built.
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../../", import.meta.url));

export type GoProgram = "test/kube" | "test/operators/go-foo";

/** The folder that built programs are kept in. */
export function cacheDir(): string {
  return join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "ctrlmesh");
}

/** Path of the built program; builds it first if need be, which takes minutes on a cold cache. */
export async function goProgram(program: GoProgram): Promise<string> {
  const folder = join(ROOT, program);
  const name = program.split("/").at(-1) ?? program;
  const binary = join(cacheDir(), `${name}-${hashOf(folder)}`);
  if (existsSync(binary)) return binary;
  mkdirSync(cacheDir(), { recursive: true });
  const partial = `${binary}.${process.pid}`;
  process.stderr.write(`building ${program} (once for these sources; the control plane takes some minutes on a cold cache)\n`);
  try {
    await run("go", ["build", "-trimpath", "-o", partial, "."], { cwd: folder, maxBuffer: 64 * 1024 * 1024 });
    renameSync(partial, binary);
  } finally {
    rmSync(partial, { force: true });
  }
  return binary;
}

/** Why the Go programs cannot be had here; undefined if they can. */
export async function whyNoGo(): Promise<string | undefined> {
  try {
    await run("go", ["version"]);
    return undefined;
  } catch {
    return "Go is not installed";
  }
}

function hashOf(folder: string): string {
  const hash = createHash("sha256");
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !/\.go$|^go\.(mod|sum)$/.test(entry.name)) continue;
    const path = join(entry.parentPath, entry.name);
    hash.update(path.slice(folder.length)).update("\0").update(readFileSync(path)).update("\0");
  }
  return hash.digest("hex").slice(0, 16);
}
