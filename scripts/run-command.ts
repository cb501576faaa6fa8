// Runs a command of the tests to its end, with the repository's programs on PATH. Used by the runners of `npm test`.
import { type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** The repository, with a slash at the end. */
export const ROOT = fileURLToPath(new URL("../", import.meta.url));
export const MINUTE_MS = 60_000;
const BIN = join(ROOT, "node_modules/.bin");
/** The tests start many processes from the same sources: Node compiles each source once. */
const COMPILE_CACHE = join(ROOT, "node_modules/.cache/node-compile");

export interface RunOptions {
  readonly timeoutMs: number;
  /** Default the repository. */
  readonly cwd?: string;
  /** Takes each line of stdout; default: stdout is shown. */
  readonly onLine?: (line: string) => void;
}

/** Resolves with the exit code, the signal, or why the command did not start. */
export async function runCommand(command: string, args: readonly string[], options: RunOptions): Promise<number | string> {
  const { timeoutMs, cwd = ROOT, onLine } = options;
  const env = { ...process.env, PATH: `${BIN}${delimiter}${process.env.PATH ?? ""}`, NODE_COMPILE_CACHE: COMPILE_CACHE };
  const stdio: SpawnOptions["stdio"] = ["ignore", onLine === undefined ? "inherit" : "pipe", "inherit"];
  const child = spawn(command, [...args], { cwd, env, stdio });
  const timer = setTimeout(() => {
    console.error(`${command}: still running after ${timeoutMs / MINUTE_MS} minutes`);
    child.kill("SIGTERM");
    setTimeout(() => child.kill("SIGKILL"), 10_000).unref();
  }, timeoutMs);
  try {
    if (onLine !== undefined && child.stdout !== null) createInterface({ input: child.stdout }).on("line", onLine);
    const [code, signal] = (await once(child, "close")) as [number | null, string | null];
    return code ?? signal ?? "nothing";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    clearTimeout(timer);
  }
}
