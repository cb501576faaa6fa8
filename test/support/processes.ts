// The processes that a process under test has started, and whether one of them still runs.
import { execFileSync } from "node:child_process";

export interface ChildOf {
  readonly pid: number;
  readonly command: string;
}

export function childrenOf(pid: number): ChildOf[] {
  const rows = execFileSync("ps", ["-A", "-o", "pid=,ppid=,args="], { encoding: "utf8" }).split("\n");
  return rows.flatMap((row) => {
    const [, child, parent, command] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(row) ?? [];
    return Number(parent) === pid && command !== undefined ? [{ pid: Number(child), command }] : [];
  });
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
