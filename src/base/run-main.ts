// The frame of a service's main: settings, signals, exit codes. Invariant: bad configuration ends with 64 and every problem
// on stderr; a clean drain with 0; anything else with 1 after one log line.
import type { z } from "zod";
import type { Env } from "./env.ts";
import { errorMessage, isMeshError } from "./errors.ts";
import { shutdownSignal } from "./lifecycle.ts";
import { type CommandLine, EXIT_USAGE, readInvocation } from "./settings.ts";

/** What a service's app is given. */
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
    process.exit(0); // everything is drained; a library's forgotten timer must not keep the process
  } catch (error) {
    process.stderr.write(`${commandLine.title.split(":")[0]}: ${errorMessage(error)}\n`);
    process.exit(isMeshError(error, "CONFIG_INVALID") ? EXIT_USAGE : 1);
  }
}
