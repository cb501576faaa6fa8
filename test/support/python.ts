// A Python with the packages of test/operators/python in a virtual environment. It is created once for each state of
// requirements.txt, which pins versions and hashes, and kept in the user's cache beside the built Go programs.
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { cacheDir, isBuilt, makeRoom } from "./build-cache.ts";

const run = promisify(execFile);
const REQUIREMENTS = fileURLToPath(new URL("../operators/python/requirements.txt", import.meta.url));
const INSTALL_TIMEOUT_MS = 5 * 60_000;

export type PythonEnvironment =
  /** `command` is the environment's python. */
  { readonly command: string } | { readonly missing: string };

/** The environment, or the reason why there is none. The first call creates it, which takes half a minute and the network. */
export async function pythonEnvironment(): Promise<PythonEnvironment> {
  let version: string;
  try {
    version = (await run("python3", ["--version"])).stdout.trim();
  } catch {
    return { missing: "python3 is not installed" };
  }
  const hash = createHash("sha256").update(version).update("\0").update(readFileSync(REQUIREMENTS)).digest("hex").slice(0, 16);
  const folder = join(cacheDir(), `python-${hash}`);
  const command = join(folder, "bin/python");
  if (isBuilt(folder)) return { command };
  makeRoom();
  const partial = `${folder}.${process.pid}`;
  process.stderr.write("installing the Python clients (once for these requirements)\n");
  try {
    await run("python3", ["-m", "venv", partial]);
    const install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "--only-binary=:all:"];
    await run(join(partial, "bin/python"), [...install, "-r", REQUIREMENTS], { timeout: INSTALL_TIMEOUT_MS });
    renameSync(partial, folder);
    return { command };
  } catch (error) {
    if (existsSync(command)) return { command }; // another run was faster
    return { missing: `the Python clients cannot be installed: ${lastLine(error)}` };
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
}

function lastLine(error: unknown): string {
  const text = (error as { stderr?: string }).stderr || String(error);
  return text.trim().split("\n").at(-1) ?? "";
}
