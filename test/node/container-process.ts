// One run of a container: a process of this machine in its own namespaces. All its processes end with its first process (pid
// namespace), which ends with the agent (death signal), even after a crash of the agent.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdirSync, openSync } from "node:fs";
import { constants } from "node:os";
import { dirname } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { asIdentity, envWords, type Sandbox, sandboxScript } from "./sandbox.ts";

export interface ProcessOptions {
  readonly sandbox: Sandbox;
  /** The path of the pod's network namespace. */
  readonly network: string;
  readonly env: Readonly<Record<string, string>>;
  readonly argv: readonly string[];
  /** The file of both outputs. */
  readonly logFile: string;
}

export interface ExecResult {
  readonly code: number;
  readonly output: string;
}

export interface ContainerProcess {
  /** The pid on this machine. */
  readonly pid: number;
  /** Resolves with the exit code; 128 and the signal's number after a signal. */
  readonly ended: Promise<number>;
  signal(name: NodeJS.Signals): void;
  /** Runs a program in the container, as its user. */
  exec(argv: readonly string[], timeoutMs: number): Promise<ExecResult>;
}

const DIE_WITH_AGENT = ["--pdeathsig", "KILL", "--"];

// The shell stays outside the pid namespace and reports how the first process, its child, ended. The shell's own messages
// ("Killed") are not the container's.
const WAIT_FOR_FIRST = 'exec 4>&2 2>/dev/null; (exec setpriv --pdeathsig KILL -- sh -c "$1" 2>&4 4>&-); exit $?';

/** @throws Error if the namespaces and mounts cannot be created */
export async function startProcess(options: ProcessOptions): Promise<ContainerProcess> {
  const { sandbox, network, env, argv, logFile } = options;
  mkdirSync(sandbox.dir, { recursive: true });
  mkdirSync(dirname(logFile), { recursive: true });
  const log = openSync(logFile, "a");
  const child = spawn(
    "setpriv",
    [
      ...DIE_WITH_AGENT,
      "nsenter",
      `--net=${network}`,
      "--",
      "unshare",
      "--mount",
      "--uts",
      "--pid",
      "--",
      "sh",
      "-c",
      WAIT_FOR_FIRST,
      "sh",
      sandboxScript(sandbox, env, argv),
    ],
    { stdio: ["ignore", log, log, "pipe"], detached: true }, // containers do not get Ctrl-C
  );
  closeSync(log);
  const exit = once(child, "exit") as Promise<[number | null, NodeJS.Signals | null]>;
  const ended = exit.then(([code, signal]) => code ?? 128 + (signal === null ? 0 : constants.signals[signal]));
  const pid = await madeBy(child.stdio[3] as Readable);
  if (pid === undefined) {
    child.kill("SIGKILL");
    await ended;
    throw new Error(`the container's world could not be made; see ${logFile}`);
  }
  let isOver = false;
  void ended.then(() => {
    isOver = true;
  });
  return {
    pid,
    ended,
    signal(name) {
      if (isOver) return;
      try {
        process.kill(pid, name);
      } catch {
        // the process has just ended
      }
    },
    exec(command, timeoutMs) {
      const { workingDir, identity } = sandbox;
      const enter = ["nsenter", "--target", String(pid), "--mount", "--pid", "--net", "--uts", `--wdns=${workingDir}`, "--"];
      const limit = ["timeout", "--signal=KILL", String(timeoutMs / 1000)];
      const args = [...DIE_WITH_AGENT, ...enter, ...limit, ...asIdentity(identity), "env", "-i", ...envWords(env), ...command];
      return new Promise((resolve) => {
        execFile("setpriv", args, { maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
          resolve({ code: error === null ? 0 : typeof error.code === "number" ? error.code : 128, output: stdout + stderr });
        });
      });
    },
  };
}

// The pid, once the mounts exist; undefined if a mount failed. The pipe stays open while the container runs, since the waiting
// shell holds it too.
async function madeBy(stream: Readable): Promise<number | undefined> {
  let pid: number | undefined;
  for await (const line of createInterface({ input: stream })) {
    if (line === "made") return pid;
    pid = Number(line);
  }
  return undefined;
}
