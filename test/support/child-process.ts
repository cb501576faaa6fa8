// Child processes of tests and scripts. Each has a ready line, and a failure message contains its logs. All end with the parent.
// (After kill -9 of the parent the children end by --parent-pid or by the end of stdin.)
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { createInterface } from "node:readline";

export interface ChildOptions {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Waits for a line of JSON on stdout; the default is true. */
  readonly readyLine?: boolean;
  /** The default is 30,000 ms. */
  readonly readyMs?: number;
  /** Prints the child's output. */
  readonly verbose?: boolean;
  /** Receives every line of stdout except the ready line. */
  readonly onLine?: (line: string) => void;
}

export interface Child {
  readonly name: string;
  readonly pid: number;
  /** The ready line, parsed. */
  readonly ready: Readonly<Record<string, unknown>>;
  readonly exited: boolean;
  /** Resolves when the process ends, for any reason. */
  readonly ended: Promise<void>;
  /** The newest lines of stdout (after the ready line) and stderr. */
  output(): string;
  kill(signal: NodeJS.Signals): void;
  /** Sends SIGTERM, and SIGKILL after `graceMs` (default 10,000). Resolves with the exit code (null after a signal). */
  stop(graceMs?: number): Promise<number | null>;
}

const MAX_LINES = 400;
const running = new Set<ChildProcessWithoutNullStreams>();
let hooked = false;

/** @throws Error with the child's output if it ends or stays silent before it is ready */
export async function startChild(options: ChildOptions): Promise<Child> {
  hookExit();
  const child = spawn(options.command, [...options.args], { env: { ...process.env, ...options.env } });
  running.add(child);
  child.once("exit", () => running.delete(child));
  child.on("error", () => running.delete(child)); // the process did not start, or has ended
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const lines: string[] = [];
  const keep = (line: string) => {
    lines.push(line);
    if (lines.length > MAX_LINES) lines.shift();
    if (options.verbose) process.stderr.write(`[${options.name}] ${line}\n`);
  };
  createInterface({ input: child.stderr }).on("line", keep);
  const output = () => lines.join("\n");
  const heard = (line: string) => {
    keep(line);
    options.onLine?.(line);
  };
  const ready = await readyOf(child, options, heard).catch((cause: Error) => {
    child.kill("SIGKILL");
    throw new Error(`starting ${options.name}: ${cause.message}\n${output()}`);
  });
  const hasExited = () => child.exitCode !== null || child.signalCode !== null;
  return {
    name: options.name,
    pid: child.pid ?? 0,
    ready,
    get exited() {
      return hasExited();
    },
    ended,
    output,
    kill: (signal) => void child.kill(signal),
    async stop(graceMs = 10_000) {
      if (hasExited()) return child.exitCode;
      child.kill("SIGTERM");
      child.kill("SIGCONT"); // a test may have stopped it
      const timer = setTimeout(() => child.kill("SIGKILL"), graceMs);
      await ended;
      clearTimeout(timer);
      return child.exitCode;
    },
  };
}

function readyOf(
  child: ChildProcessWithoutNullStreams,
  { readyLine = true, readyMs = 30_000 }: ChildOptions,
  keep: (line: string) => void,
): Promise<Readonly<Record<string, unknown>>> {
  const stdout = createInterface({ input: child.stdout });
  return new Promise((resolve, reject) => {
    const settle = (then: () => void) => {
      clearTimeout(timer);
      child.off("close", ended).off("error", reject);
      stdout.off("line", read).on("line", keep);
      then();
    };
    const fail = (why: string) => settle(() => reject(new Error(why)));
    const ended = () => fail(`ended with ${child.exitCode ?? child.signalCode}`);
    const read = (line: string) => {
      if (!line.startsWith("{")) return keep(line);
      try {
        const ready = JSON.parse(line) as Record<string, unknown>;
        settle(() => resolve(ready));
      } catch {
        keep(line);
        fail("the ready line is not JSON");
      }
    };
    const timer = setTimeout(() => fail(`not ready after ${readyMs} ms`), readyMs);
    child.once("error", reject);
    if (!readyLine) {
      child.once("spawn", () => settle(() => resolve({})));
      return;
    }
    child.once("close", ended); // after its last line
    stdout.on("line", read);
  });
}

function hookExit(): void {
  if (hooked) return;
  hooked = true;
  process.once("exit", () => {
    for (const child of running) child.kill("SIGKILL");
  });
}
