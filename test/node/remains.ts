// Finds processes that survive a kill: the killed processes, and all processes in their namespaces.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** Records the namespaces now. The result lists the processes in them at any time: a line each, beginning with the pid. */
export function remainsOf(...pids: readonly (number | undefined)[]): () => string[] {
  const ours = new Set(namespacesOf("self"));
  const theirs = new Set(pids.flatMap((pid) => namespacesOf(pid ?? 0)).filter((link) => !ours.has(link)));
  return () =>
    readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .filter((pid) => pids.includes(Number(pid)) || namespacesOf(pid).some((link) => theirs.has(link)))
      .flatMap((pid) => {
        const command = ignoringGone(() => readFileSync(`/proc/${pid}/cmdline`, "utf8"));
        return command === undefined ? [] : [`${pid}: ${command.replaceAll("\0", " ")}`];
      });
}

function namespacesOf(pid: number | string): string[] {
  return ["net", "mnt", "pid"].flatMap((kind) => ignoringGone(() => readlinkSync(`/proc/${pid}/ns/${kind}`)) ?? []);
}

function ignoringGone(read: () => string): string | undefined {
  try {
    return read();
  } catch {
    return undefined; // it has just ended
  }
}
