// Suspends a process with all its children, as a machine that hangs: it keeps its connections and does not respond.
import { readFileSync } from "node:fs";

/** Sends SIGSTOP. @returns sends SIGCONT to the same processes */
export function suspend(pid: number): () => void {
  const family = familyOf(pid);
  for (const each of family) process.kill(each, "SIGSTOP");
  return () => {
    for (const each of family) process.kill(each, "SIGCONT");
  };
}

function familyOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  return [pid, ...(children === "" ? [] : children.split(" ").flatMap((child) => familyOf(Number(child))))];
}
