// Builds the client program in Java on demand, once for each state of its sources, with Maven. The result is in the user's cache beside
// the built Go programs.
import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { cacheDir, isBuilt, makeRoom } from "./build-cache.ts";
import { sourceHash } from "./source-hash.ts";

const run = promisify(execFile);
const FOLDER = fileURLToPath(new URL("../operators/fabric8", import.meta.url));
const OPTIONS = { maxBuffer: 64 * 1024 * 1024, timeout: 20 * 60_000 };

export interface Command {
  readonly command: string;
  readonly args: readonly string[];
}

/** fabric8. The first build takes half a minute and the network. @throws Error with the end of the output of Maven */
export async function javaProgram(): Promise<Command> {
  const classes = join(cacheDir(), `fabric8-${sourceHash([FOLDER])}`);
  await build(classes, async (partial) => {
    const work = mkdtempSync(join(cacheDir(), "fabric8-build-"));
    try {
      cpSync(FOLDER, work, { recursive: true });
      const goals = ["compile", "dependency:copy-dependencies", "-DincludeScope=runtime"];
      await run("mvn", ["--quiet", "--batch-mode", ...goals], { ...OPTIONS, cwd: work });
      renameSync(join(work, "target"), partial);
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
  });
  return { command: "java", args: ["-cp", `${classes}/classes:${classes}/dependency/*`, "Fabric8"] };
}

async function build(result: string, make: (partial: string) => Promise<void>): Promise<void> {
  if (isBuilt(result)) return;
  makeRoom();
  const partial = `${result}.${process.pid}`;
  process.stderr.write(`building ${result} (once for these sources)\n`);
  try {
    await make(partial);
    if (!existsSync(result)) renameSync(partial, result);
  } catch (error) {
    const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
    throw new Error(`building ${result}: ${(stdout + stderr).slice(-2_000)}`, { cause: error });
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
}
