// Runs a command in namespaces of its own, in which the node lives: mounts, network, processes, host name, IPC. However it ends, also by kill -9 of
// this process, the kernel ends all that was started in them. The kernel keeps control groups and files. This module removes them at the end of a run,
// and at its start those of an earlier run that was killed.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { eventually } from "../support/eventually.ts";
import { makeCgroups, processesInCgroups, removeCgroups } from "./cgroups.ts";

const INSIDE = fileURLToPath(new URL("inside.sh", import.meta.url));
const PREFIX = "ctrlmesh-real-node-";
export const NODE_NAME = "node-1";
export const NODE_ADDRESS = "10.200.0.1";

/** Another run on this machine, of which there may be one: both would have the same control groups. */
export function otherRun(own?: string): string | undefined {
  const others = folders().filter((folder) => folder !== own);
  return others.map(pidOf).find(isTestRun);
}

/** Runs the command to its end and resolves with its exit code, or 130 after Ctrl-C. `use` gets the node's folder before that is removed. */
export async function runInside(command: (folder: string) => readonly string[], use: (folder: string) => void): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), PREFIX));
  writeFileSync(join(folder, "pid"), String(process.pid));
  const other = otherRun(folder); // two that start at once both end here
  if (other !== undefined) {
    rmSync(folder, { recursive: true });
    throw new Error(`process ${other} runs the node's tests already`);
  }
  await removeRemains(folder);
  makeCgroups();
  const namespaces = ["--mount", "--net", "--pid", "--uts", "--ipc", "--fork", "--kill-child", "--mount-proc"];
  const args = ["--pdeathsig", "KILL", "unshare", ...namespaces, INSIDE, NODE_NAME, NODE_ADDRESS, folder, ...command(folder)];
  const child = spawn("setpriv", args, { stdio: ["ignore", "inherit", "inherit"], detached: true });
  let isStopped = false;
  const stop = () => {
    isStopped = true;
    child.kill("SIGKILL");
  };
  process.on("SIGINT", stop).on("SIGTERM", stop);
  try {
    const [code] = (await once(child, "exit")) as [number | null];
    use(folder);
    return isStopped ? 130 : (code ?? 1);
  } finally {
    process.off("SIGINT", stop).off("SIGTERM", stop);
    await removeCgroups();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Removes what killed runs have left. */
async function removeRemains(own: string): Promise<void> {
  for (const folder of folders()) {
    if (folder === own) continue;
    // Its namespaces have just lost their first process.
    await eventually(() => processesInCgroups().length === 0, { withinMs: 10_000, everyMs: 100 });
    rmSync(folder, { recursive: true, force: true });
  }
  await removeCgroups();
}

function folders(): string[] {
  const names = readdirSync(tmpdir()).filter((name) => name.startsWith(PREFIX));
  return names.map((name) => join(tmpdir(), name));
}

function pidOf(folder: string): string {
  const file = join(folder, "pid");
  return existsSync(file) ? readFileSync(file, "utf8") : "";
}

/** False for a later process of the same number. */
function isTestRun(pid: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("test-node.ts");
  } catch {
    return false;
  }
}
