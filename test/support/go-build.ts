// Builds the Go programs of the tests on demand, once for each state of their sources: the binary lies in the user's cache
// under the hash of its folder, so a fresh clone of the same sources finds it built.
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { cacheDir, isBuilt, makeRoom } from "./build-cache.ts";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const BUILD_TIMEOUT_MS = 20 * 60_000;

export const GO_PROGRAMS = [
  "test/operators/go-foo",
  "test/operators/fake-kubelet",
  "test/operators/go-old",
  "test/kube",
  "test/tools/helm",
] as const;
export type GoProgram = (typeof GO_PROGRAMS)[number];

/** The same for build, vet and test: with other flags Go compiles all of Kubernetes once more. */
export const GO_FLAGS: readonly string[] = ["-trimpath"];

/**
 * Path of the built program; builds it first if need be, which takes minutes on a cold cache.
 * @throws Error with the compiler's words
 */
export async function goProgram(program: GoProgram): Promise<string> {
  const folder = join(ROOT, program);
  const binary = join(cacheDir(), `${basename(program)}-${hashOf(folder)}`);
  if (isBuilt(binary)) return binary;
  makeRoom();
  const partial = `${binary}.${process.pid}`;
  process.stderr.write(`building ${program} (once for these sources; the control plane takes some minutes on a cold cache)\n`);
  try {
    // Without symbols the control plane takes 60 MB less.
    const args = ["build", ...GO_FLAGS, "-ldflags=-s -w", "-o", partial, "."];
    await run("go", args, { cwd: folder, maxBuffer: 64 * 1024 * 1024, timeout: BUILD_TIMEOUT_MS });
    renameSync(partial, binary);
  } finally {
    rmSync(partial, { force: true });
  }
  return binary;
}

/** Why the Go programs cannot be built here; undefined if they can. */
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
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && isSource(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
  for (const path of files) hash.update(path.slice(folder.length)).update("\0").update(readFileSync(path)).update("\0");
  return hash.digest("hex").slice(0, 16);
}

function isSource(name: string): boolean {
  return (name.endsWith(".go") && !name.endsWith("_test.go")) || name === "go.mod" || name === "go.sum";
}
