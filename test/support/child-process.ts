// Child processes of tests and scripts: started with a ready line, logs kept for the failure message, and none left behind,
// whatever ends the parent. (kill -9 of the parent is covered by the children that take --parent-pid or watch stdin.)
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

export interface ChildOptions {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Wait for a line of JSON on stdout before it counts as started; default true. */
  readonly readyLine?: boolean;
  /** Default 30,000 ms. */
  readonly readyMs?: number;
  /** Pass the child's stderr through. */
  readonly verbose?: boolean;
}

export interface Child {
  readonly name: string;
  readonly pid: number;
  /** The ready line, parsed. */
  readonly ready: Readonly<Record<string, unknown>>;
  readonly exited: boolean;
  /** The newest lines of stdout (after the ready line) and stderr. */
  output(): string;
  kill(signal: NodeJS.Signals): void;
  /** SIGTERM, after `graceMs` SIGKILL. Resolves with the exit code (null if killed by a signal). */
  stop(graceMs?: number): Promise<number | null>;
}

const MAX_LINES = 400;
const running = new Set<ChildProcess>();
let hooked = false;

export async function startChild(options: ChildOptions): Promise<Child> {
  hookExit();
  const child = spawn(options.command, [...options.args], {
    env: { ...process.env, ...options.env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  running.add(child);
  child.once("exit", () => running.delete(child));
  const lines: string[] = [];
  const keep = (line: string) => {
    lines.push(line);
    if (lines.length > MAX_LINES) lines.shift();
    if (options.verbose) process.stderr.write(`[${options.name}] ${line}\n`);
  };
  createInterface({ input: child.stderr }).on("line", keep);
  const ready = await readyOf(child, options, keep, () => lines.join("\n"));
  return {
    name: options.name,
    pid: child.pid ?? 0,
    ready,
    get exited() {
      return child.exitCode !== null || child.signalCode !== null;
    },
    output: () => lines.join("\n"),
    kill: (signal) => void child.kill(signal),
    async stop(graceMs = 10_000) {
      if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
      const gone = once(child, "exit");
      child.kill("SIGTERM");
      child.kill("SIGCONT");
      const timer = setTimeout(() => child.kill("SIGKILL"), graceMs);
      await gone;
      clearTimeout(timer);
      return child.exitCode;
    },
  };
}

async function readyOf(
  child: ChildProcess,
  { name, readyLine = true, readyMs = 30_000 }: ChildOptions,
  keep: (line: string) => void,
  output: () => string,
): Promise<Readonly<Record<string, unknown>>> {
  if (child.stdout === null) throw new Error(`starting ${name}: no stdout`);
  const stdout = createInterface({ input: child.stdout });
  if (!readyLine) {
    stdout.on("line", keep);
    return {};
  }
  return new Promise((resolve, reject) => {
    const fail = (why: string) => {
      child.kill("SIGKILL");
      reject(new Error(`starting ${name}: ${why}\n${output()}`));
    };
    const timer = setTimeout(() => fail(`not ready after ${readyMs} ms`), readyMs);
    const ended = () => fail(`ended with ${child.exitCode ?? child.signalCode}`);
    child.once("error", (error) => fail(error.message));
    child.once("exit", ended);
    let isReady = false;
    stdout.on("line", (line) => {
      if (isReady || !line.startsWith("{")) return keep(line);
      isReady = true;
      clearTimeout(timer);
      child.off("exit", ended);
      resolve(JSON.parse(line) as Record<string, unknown>);
    });
  });
}

function hookExit(): void {
  if (hooked) return;
  hooked = true;
  process.once("exit", () => {
    for (const child of running) child.kill("SIGKILL");
  });
}
