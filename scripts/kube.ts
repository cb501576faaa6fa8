// `npm run kube`: starts a real control plane on free loopback ports, prints how to use it, and stops it at Ctrl-C.
// Options: --dir DIR keeps the state; --controller-manager; --scheduler; --feature-gates A=true.
import { parseArgs } from "node:util";
import { startKube } from "../test/support/kube.ts";

const flag = { type: "boolean", default: false } as const;
const { values } = parseArgs({
  options: { dir: { type: "string" }, "controller-manager": flag, scheduler: flag, "feature-gates": { type: "string" } },
});

const interrupted = Promise.withResolvers<void>();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => interrupted.resolve());

const starting = startKube({
  controllerManager: values["controller-manager"],
  scheduler: values.scheduler,
  ...(values.dir === undefined ? {} : { dir: values.dir }),
  ...(values["feature-gates"] === undefined ? {} : { featureGates: values["feature-gates"] }),
});
// After Ctrl-C during the start the control plane ends with its parent.
const kube = await Promise.race([starting, interrupted.promise]);
if (kube === undefined) process.exit(130);
process.stdout.write(`export KUBECONFIG=${kube.kubeconfig}\n`);
process.stderr.write(`control plane ready in ${kube.startupMs} ms at ${kube.server}; Ctrl-C stops it\n`);
await interrupted.promise;
await kube.stop();
