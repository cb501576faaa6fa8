// `ctrlmesh dashboard` as people run it, with a temporary folder of its own.
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import type { Part } from "../../src/cli/dashboard/model/parts.ts";
import { eventually } from "./eventually.ts";
import { programMain } from "./programs.ts";

const MAIN = programMain("cli");

export interface DashboardProgram {
  readonly url: string;
  readonly child: ChildProcessByStdio<null, Readable, Readable>;
  /** Its temporary folder. */
  readonly folder: string;
  readonly ended: Promise<unknown>;
}

/**
 * Waits until it has printed its address.
 * @param closing gets what ends it
 * @throws Error with its stderr, if it ends before
 */
export async function startDashboard(
  env: Readonly<Record<string, string>>,
  args: readonly string[],
  closing: (() => void | Promise<void>)[],
): Promise<DashboardProgram> {
  const folder = mkdtempSync(join(tmpdir(), "ctrlmesh-dashboard-test-"));
  const child = spawn(process.execPath, [MAIN, "dashboard", ...args], {
    env: { ...process.env, TMPDIR: folder, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk) => (stdout += chunk));
  child.stderr.on("data", (chunk) => (stderr += chunk));
  const ended = once(child, "close").then(([code]) => code);
  // Not SIGKILL, which leaves its kubectl.
  closing.push(async () => {
    child.kill("SIGTERM");
    await ended.catch(() => undefined);
    rmSync(folder, { recursive: true, force: true });
  });
  await Promise.race([eventually(() => stdout.endsWith("\n"), 30_000), ended.then(() => Promise.reject(new Error(stderr)))]);
  return { url: stdout.trim(), child, folder, ended };
}

/** What the page knows of an app. */
export function appIn(parts: Iterable<Part>, app: string) {
  return [...parts].find((part) => part.part === "app" && part.name === app) as Extract<Part, { part: "app" }> | undefined;
}
