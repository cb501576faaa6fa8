// Memory of another process, from Linux' /proc.
import { readFileSync } from "node:fs";

/** Resident set now and at its highest, in MB. */
export function memoryOf(pid: number): { readonly rssMb: number; readonly peakMb: number } {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const read = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(status)?.[1] ?? 0) / 1024;
  return { rssMb: Math.round(read("VmRSS")), peakMb: Math.round(read("VmHWM")) };
}
