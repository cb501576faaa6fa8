// Runs a command in namespaces of its own, in which the nodes live: mounts, network, processes, host name, IPC. However it ends, also by kill -9 of
// this process, the kernel ends all that was started in them. The kernel keeps control groups and files. This module removes them at the end of a run,
// and at its start those of an earlier run that was killed.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "../support/eventually.ts";
import { processesInCgroups, removeCgroups } from "./cgroups.ts";
import { FIRST_NAME, HOST_SCRIPT, hostFolder } from "./hosts.ts";

const PREFIX = "ctrlmesh-real-node-";
/** The file that names the process of a run. */
const OWNER = "owner";

/** Runs the command to its end and resolves with its exit code, or 130 after Ctrl-C. `use` gets the run's folder before that is removed. */
export async function runInside(command: (folder: string) => readonly string[], use: (folder: string) => void): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), PREFIX));
  writeFileSync(join(folder, OWNER), processStart(process.pid));
  await removeRemains(folder);
  const namespaces = ["--mount", "--net", "--pid", "--uts", "--ipc", "--fork", "--kill-child", "--mount-proc"];
  const args = [
    "--pdeathsig",
    "KILL",
    "unshare",
    ...namespaces,
    HOST_SCRIPT,
    FIRST_NAME,
    hostFolder(folder, FIRST_NAME),
    ...command(folder),
  ];
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
    await removeRun(folder);
  }
}

/** Removes what killed runs have left. */
async function removeRemains(own: string): Promise<void> {
  const names = readdirSync(tmpdir()).filter((name) => name.startsWith(PREFIX));
  for (const folder of names.map((name) => join(tmpdir(), name))) {
    if (folder === own || isOwned(folder)) continue;
    // Its namespaces may just have lost their first process.
    await eventually(() => processesInCgroups(folder).length === 0, { withinMs: 10_000, everyMs: 100 });
    await removeRun(folder);
  }
}

async function removeRun(folder: string): Promise<void> {
  await removeCgroups(folder);
  rmSync(folder, { recursive: true, force: true });
}

/** Whether the process that made the folder still runs. */
function isOwned(folder: string): boolean {
  const file = join(folder, OWNER);
  if (!existsSync(file)) return true; // it has just been made
  const owner = readFileSync(file, "utf8");
  return owner === processStart(Number.parseInt(owner, 10));
}

/** Names a process: its number and the time of its start, since a later process may have the same number. Empty if it does not run. */
function processStart(pid: number): string {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\)/, "").trim().split(" ");
    return `${pid} ${fields[19]}`; // proc(5): starttime
  } catch {
    return "";
  }
}
