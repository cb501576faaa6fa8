// `npm run demo` as a child without a terminal, as in CI.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const MAIN = fileURLToPath(new URL("../../examples/demo/main.ts", import.meta.url));
/** Within which an act ends. */
export const DEMO_BUDGET_MS = 60_000;

/** `npm run demo -- ARGS` with a temporary folder of its own. */
export function startDemo(...args: readonly string[]) {
  const temporary = mkdtempSync(join(tmpdir(), "ctrlmesh-demo-test-"));
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { ...process.env, TMPDIR: temporary },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const pid = child.pid ?? 0;
  const output = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output.stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    output.stderr += text;
  });
  const ended = once(child, "close").then(() => child.exitCode);
  const close = () => {
    child.kill("SIGKILL");
    rmSync(temporary, { recursive: true, force: true });
  };
  return { pid, output, ended, leftovers: () => readdirSync(temporary), close };
}
