// One program of the control plane as a child that cannot outlive this process. A shell between them holds a pipe of this process
// and kills the program when the pipe closes, which the kernel does also after kill -9.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";

// A background command of sh has no stdin, so the pipe has another number.
const LIFELINE = `
exec 3<&0
"$@" 3<&- </dev/null &
child=$!
( while read -r _ <&3; do :; done; kill -KILL $child 2>/dev/null ) &
watcher=$!
trap 'kill -TERM $child 2>/dev/null' TERM
while :; do
  wait $child
  status=$?
  kill -0 $child 2>/dev/null || break
done
kill -KILL $watcher 2>/dev/null
exit $status
`;

export interface Component {
  readonly name: string;
  /** Resolves once the program has ended, for any reason. */
  readonly ended: Promise<string>;
  /** Sends SIGTERM. After `graceMs` it closes the pipe, which causes SIGKILL. */
  stop(graceMs: number): Promise<void>;
}

/** Starts a program. Both of its outputs go to `logFile`. */
export function startComponent(name: string, command: string, args: readonly string[], logFile: string): Component {
  const log = openSync(logFile, "a");
  const child: ChildProcess = spawn("/bin/sh", ["-c", LIFELINE, name, command, ...args], { stdio: ["pipe", log, log] });
  closeSync(log);
  const ended = once(child, "exit").then(([code, signal]) => `${name} ended with ${code ?? signal}`);
  return {
    name,
    ended,
    async stop(graceMs) {
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.stdin?.destroy(), graceMs);
      await ended;
      clearTimeout(timer);
    },
  };
}
