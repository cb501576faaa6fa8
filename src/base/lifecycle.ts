// Starts the parts of a process in order and drains them in reverse. Invariant: a part starts after all parts
// of earlier groups are ready, and stops before them. Called by each service's main.
import { untilAborted } from "./abort.ts";
import { MeshError } from "./errors.ts";
import type { Logger } from "./log.ts";

/** A part of a process that starts and stops. */
export interface Runnable {
  readonly name: string;
  /** Starts; resolves once ready to serve. Must end when the signal fires. */
  start(signal: AbortSignal): Promise<void>;
  /** Finishes running work and frees everything. Called once, also after a failed start. */
  stop(): Promise<void>;
}

export interface RunOptions {
  readonly signal: AbortSignal;
  readonly log: Logger;
  /** Upper bound in milliseconds for the whole drain; default 10,000. */
  readonly drainMs?: number;
}

/**
 * Starts the groups in order (members of a group together), waits for the signal, then stops the groups in
 * reverse order. Rejects with the first error of a start, after it has stopped the started groups.
 */
export async function runGroups(groups: readonly (readonly Runnable[])[], options: RunOptions): Promise<void> {
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

async function drain(groups: readonly (readonly Runnable[])[], { log, drainMs = 10_000 }: RunOptions): Promise<void> {
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
