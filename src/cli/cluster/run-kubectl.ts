// Runs the user's kubectl. Invariant: no kubectl outlives its call or this process, also not one that a script has
// started: each gets a group of processes of its own, which is killed as a whole.
import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { MeshError } from "../../base/errors.ts";
import { failure } from "../frame/command.ts";

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

const MAX_ANSWER_BYTES = 256 * 1024 * 1024;

/** Windows has no groups of processes, and a detached process there opens a window. */
const HAS_GROUPS = process.platform !== "win32";

const running = new Set<Child>();
process.once("exit", () => {
  for (const child of running) stop(child);
});

/** @param input what it reads from its stdin; default: nothing */
export function startKubectl(args: readonly string[], input?: string): Child {
  const child = spawn("kubectl", args, { stdio: ["pipe", "pipe", "pipe"], detached: HAS_GROUPS, windowsHide: true });
  // It may end before it has read all, and then says why.
  child.stdin.on("error", () => {});
  child.stdin.end(input);
  running.add(child);
  child.once("exit", () => running.delete(child));
  return child;
}

export function stop(child: Child): void {
  running.delete(child);
  child.stdin.destroy();
  child.stdout.destroy();
  child.stderr.destroy();
  if (child.pid === undefined) return;
  try {
    if (HAS_GROUPS) process.kill(-child.pid, "SIGKILL");
    else child.kill("SIGKILL");
  } catch {
    // It has ended.
  }
}

export interface Ended {
  /** Undefined: its time was over. */
  readonly code: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/** @throws MeshError `NO_KUBECTL` if there is no such program, `COMMAND_FAILED` if it cannot be started */
export function runKubectl(args: readonly string[], timeoutMs: number, input?: string): Promise<Ended> {
  const child = startKubectl(args, input);
  const [stdout, stderr]: [Buffer[], Buffer[]] = [[], []];
  let bytes = 0;
  return new Promise<Ended>((resolve, reject) => {
    const end = (code: number | undefined) =>
      resolve({ code, stdout: Buffer.concat(stdout).toString(), stderr: Buffer.concat(stderr).toString().trim() });
    const keep = (chunks: Buffer[]) => (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= MAX_ANSWER_BYTES) chunks.push(chunk);
      else reject(failure("kubectl has printed more than 256 MB"));
    };
    child.stdout.on("data", keep(stdout));
    child.stderr.on("data", keep(stderr));
    child.on("error", (error) => reject(startError(error)));
    child.on("close", (code) => end(code ?? 1));
    AbortSignal.timeout(timeoutMs).addEventListener("abort", () => end(undefined));
  }).finally(() => stop(child));
}

export function startError(error: Error & { code?: unknown }): MeshError {
  if (error.code === "ENOENT") return new MeshError("NO_KUBECTL", "there is no kubectl on the PATH");
  return failure(`kubectl on the PATH cannot be started (${String(error.code)})`);
}
