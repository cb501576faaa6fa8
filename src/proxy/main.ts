// The process ctrlmesh-proxy: reads its configuration, runs, and says with its exit code how that went.
import { EXIT_USAGE } from "../base/config.ts";
import { processEnv } from "../base/env.ts";
import { errorMessage, isMeshError } from "../base/errors.ts";
import { shutdownSignal } from "../base/lifecycle.ts";
import { runProxy } from "./app.ts";
import { readInvocation } from "./config.ts";

try {
  const invocation = readInvocation(process.argv.slice(2), processEnv());
  if (invocation.kind === "help") process.stdout.write(invocation.text);
  else await runProxy(invocation.config, { signal: shutdownSignal(), onReady: printReady(invocation.config.printReady) });
} catch (error) {
  process.stderr.write(`ctrlmesh-proxy: ${errorMessage(error)}\n`);
  process.exitCode = isMeshError(error, "CONFIG_INVALID") ? EXIT_USAGE : 1;
}

function printReady(wanted: boolean): (ready: object) => void {
  return (ready) => {
    if (wanted) process.stdout.write(`${JSON.stringify(ready)}\n`);
  };
}
