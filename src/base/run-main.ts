// Runs a service: settings, signals, exit codes. Invariant: the exit code is 64 for an invalid configuration,
// with every problem on stderr; 0 after a complete drain; otherwise 1, after one line on stderr. Called by
// each service's main.
import type { z } from "zod";
import type { Env } from "./env.ts";
import { errorMessage, isMeshError } from "./errors.ts";
import { shutdownSignal } from "./lifecycle.ts";
import { type CommandLine, EXIT_USAGE, readInvocation } from "./settings.ts";

/** The parameters of a service. */
export interface RunOptions {
  readonly signal: AbortSignal;
  /** Called once everything is started; printed as one line of JSON with --print-ready. */
  readonly onReady: (ready: object) => void;
}

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
