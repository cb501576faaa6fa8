// The processes of a host. All hosts share one namespace for processes, so they are told apart by their mounts.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import type { Host } from "./hosts.ts";

export interface HostProcess {
  readonly pid: number;
  /** With NUL after each argument. */
  readonly command: string;
}

/** Without those in containers. */
export function processesOf(host: Host): HostProcess[] {
  const own = mountsOf(host.pid);
  return readdirSync("/proc").flatMap((name) => {
    const pid = Number(name);
    if (Number.isNaN(pid) || mountsOf(pid) !== own) return [];
    return { pid, command: commandOf(pid) };
  });
}

function mountsOf(pid: number): string {
  return unlessEnded(() => readlinkSync(`/proc/${pid}/ns/mnt`));
}

function commandOf(pid: number): string {
  return unlessEnded(() => readFileSync(`/proc/${pid}/cmdline`, "utf8"));
}

function unlessEnded(read: () => string): string {
  try {
    return read();
  } catch {
    return ""; // it has just ended
  }
}
