// Memory and CPU time of another process, from Linux's /proc.
import { readFileSync } from "node:fs";

/** The resident set now and at its highest, in MB. */
export function memoryOf(pid: number): { readonly rssMb: number; readonly peakMb: number } {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const read = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(status)?.[1] ?? 0) / 1024;
  return { rssMb: Math.round(read("VmRSS")), peakMb: Math.round(read("VmHWM")) };
}

/** CPU time in user and system mode, in seconds. */
export function cpuSecondsOf(pid: number): number {
  // Fields 14 and 15 of proc(5) stat, in ticks of 10 ms. The name before them may contain spaces and ends with the last bracket.
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}
