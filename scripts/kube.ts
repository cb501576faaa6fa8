// `npm run kube`: starts a real control plane on free loopback ports, prints how to use it, and stops it at Ctrl-C.
// Options: --dir DIR keeps the state; --controller-manager, --scheduler; --feature-gates A=true.
import { parseArgs } from "node:util";
import { startKube } from "../test/support/kube.ts";

const { values } = parseArgs({
  options: {
    dir: { type: "string" },
    "controller-manager": { type: "boolean", default: false },
    scheduler: { type: "boolean", default: false },
    "feature-gates": { type: "string" },
  },
});
const stopped = new Promise<void>((resolve) => {
  process.once("SIGINT", () => resolve());
  process.once("SIGTERM", () => resolve());
});
const kube = await startKube({
  controllerManager: values["controller-manager"],
  scheduler: values.scheduler,
  ...(values.dir === undefined ? {} : { dir: values.dir }),
  ...(values["feature-gates"] === undefined ? {} : { featureGates: values["feature-gates"] }),
});
process.stdout.write(`export KUBECONFIG=${kube.kubeconfig}\n`);
process.stderr.write(`control plane ready in ${kube.startupMs} ms at ${kube.server}; Ctrl-C stops it\n`);
await stopped;
await kube.stop();
