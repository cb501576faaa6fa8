// Runs a service: its settings, signals and exit codes, and its parts. Invariant: a part starts after all
// parts of earlier groups are ready, and stops before them.
import type { z } from "zod";
import { untilAborted } from "./abort.ts";
import type { Env } from "./env.ts";
import { errorMessage, isMeshError, MeshError } from "./errors.ts";
import type { Logger } from "./log.ts";
import { type CommandLine, EXIT_USAGE, readInvocation } from "./settings.ts";

export interface Runnable {
  readonly name: string;
  /** Starts; resolves once ready to serve. Must end when the signal fires. */
  start(signal: AbortSignal): Promise<void>;
  /** Finishes running work and frees everything. Called once, also after a failed start. */
  stop(): Promise<void>;
}

interface GroupOptions {
  readonly signal: AbortSignal;
  readonly log: Logger;
  /** For the whole drain; default 10,000. */
  readonly drainMs?: number;
}

/**
 * Starts the groups in order (members of a group together), waits for the signal, then stops the groups in
 * reverse order. Rejects with the first error of a start, after it has stopped the started groups.
 */
export async function runGroups(groups: readonly (readonly Runnable[])[], options: GroupOptions): Promise<void> {
  const started: (readonly Runnable[])[] = [];
  try {
    for (const group of groups) {
      if (options.signal.aborted) break;
      started.push(group);
      await Promise.all(group.map((runnable) => runnable.start(options.signal)));
    }
    await untilAborted(options.signal);
  } finally {
    await drain(started.reverse(), options);
  }
}

async function drain(groups: readonly (readonly Runnable[])[], { log, drainMs = 10_000 }: GroupOptions): Promise<void> {
  const deadline = AbortSignal.timeout(drainMs);
  for (const group of groups) {
    const stops = group.map(async (runnable) => {
      try {
        await runnable.stop();
      } catch (error) {
        log.error({ err: error, runnable: runnable.name }, "stopping failed");
      }
    });
    await Promise.race([Promise.all(stops), untilAborted(deadline)]);
    if (deadline.aborted) throw new MeshError("DRAIN_TIMEOUT", `draining: not done after ${drainMs} ms`);
  }
}

/** A signal that fires at SIGTERM or SIGINT; a second one ends the process immediately. */
export function shutdownSignal(): AbortSignal {
  const controller = new AbortController();
  const onSignal = (name: NodeJS.Signals) => {
    if (controller.signal.aborted) process.exit(130);
    controller.abort(new MeshError("SHUTDOWN", `shutting down: ${name}`));
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  return controller.signal;
}

/** What `runMain` passes to a service. */
export interface RunOptions {
  readonly signal: AbortSignal;
  /** Called once everything is started; printed as one line of JSON with --print-ready. */
  readonly onReady: (ready: object) => void;
}

/**
 * Runs a service and ends the process: with 64 for an invalid configuration, with every problem on stderr;
 * with 0 after a complete drain; otherwise with 1, after one line on stderr.
 */
export async function runMain<S extends z.ZodType>(
  commandLine: CommandLine<S>,
  argv: readonly string[],
  env: Env,
  run: (config: z.output<S>, options: RunOptions) => Promise<void>,
): Promise<void> {
  try {
    const invocation = readInvocation(commandLine, argv, env);
    if (invocation.kind === "help") {
      process.stdout.write(invocation.text);
      return;
    }
    const onReady = (ready: object) => {
      if (invocation.printReady) process.stdout.write(`${JSON.stringify(ready)}\n`);
    };
    await run(invocation.config, { signal: shutdownSignal(), onReady });
    process.exit(0); // everything is drained; a timer that a library has left must not keep the process alive
  } catch (error) {
    process.stderr.write(`${commandLine.title.split(":")[0]}: ${errorMessage(error)}\n`);
    process.exit(isMeshError(error, "CONFIG_INVALID") ? EXIT_USAGE : 1);
  }
}
