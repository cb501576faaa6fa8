// Uses up a container's memory limit, as a program with a leak does, so that the kernel ends the container's largest process.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

const MOUNT = "/sys/fs/cgroup";
const MEGABYTES = 2_000;

/** @param pid of a process of the container */
export async function useUpMemory(pid: number): Promise<void> {
  const file = `/run/memory-${pid}`;
  // The pages of a file in memory count for the group of the process that writes them.
  const script = `echo $$ >${join(memoryGroup(pid), "cgroup.procs")} && exec dd if=/dev/zero of=${file} bs=1M count=${MEGABYTES}`;
  try {
    await once(spawn("sh", ["-c", script], { stdio: "ignore" }), "exit");
  } finally {
    rmSync(file, { force: true });
  }
}

function memoryGroup(pid: number): string {
  const groups = readFileSync(`/proc/${pid}/cgroup`, "utf8");
  const first = /^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:(.*)$/m.exec(groups)?.[1];
  if (first !== undefined && existsSync(join(MOUNT, "memory"))) return join(MOUNT, "memory", first);
  return join(MOUNT, /^0::(.*)$/m.exec(groups)?.[1] ?? "");
}
