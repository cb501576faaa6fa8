// The image's way to run a program: Node's flags and the environment, read from its Dockerfile, so that tests and measurements
// run it as it ships.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readDockerfile, readPairs } from "./dockerfile.ts";

export interface ProgramImage {
  /** The arguments between `node` and the program. */
  readonly nodeFlags: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export function readImage(program: "proxy" | "manager"): ProgramImage {
  const text = readFileSync(fileURLToPath(new URL(`../../Dockerfile.${program}`, import.meta.url)), "utf8");
  const { ENTRYPOINT = "[]", ENV = "" } = readDockerfile(text).stages.at(-1)?.instructions ?? {};
  const [, ...args] = JSON.parse(ENTRYPOINT) as string[];
  const { LD_PRELOAD = "", PATH: _, ...env } = readPairs(ENV);
  return {
    nodeFlags: args.filter((arg) => arg.startsWith("--")),
    env: hasLibrary(LD_PRELOAD) ? { ...env, LD_PRELOAD } : env,
  };
}

const LIBRARY_FOLDERS = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64"];

/**
 * True if this machine has the library, such as libjemalloc.so.2 of Debian's libjemalloc2. With an LD_PRELOAD that names a missing library
 * each program would print a warning.
 */
export function hasLibrary(library: string): boolean {
  return LIBRARY_FOLDERS.some((folder) => existsSync(join(folder, library)));
}
