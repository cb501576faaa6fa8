// The settings of the example operator. src/base/settings.ts reads them.
import { z } from "zod";
import { type CommandLine, listenAddress, logLevel, requiredText } from "../../src/runtime/index.ts";

const schema = z.object({
  kubeconfig: z.string(),
  namespace: requiredText,
  podName: requiredText,
  healthListen: listenAddress,
  leaseDurationMs: z.coerce.number({ error: "must be a number of milliseconds" }).int().min(1_000).max(3_600_000),
  logLevel,
});

export type OperatorConfig = z.output<typeof schema>;

export const operatorCommandLine: CommandLine<typeof schema> = {
  title: "greeting-operator: keeps a ConfigMap for each Greeting, on the controller runtime of Controller Mesh",
  prefix: "GREETING",
  schema,
  settings: {
    kubeconfig: { fallback: "", help: "file; empty: KUBECONFIG or in-cluster" },
    namespace: { fallback: "default", help: "of the lease, the words, the directory" },
    podName: { fallback: "greeting-operator-0", help: "name of this replica" },
    healthListen: { fallback: "127.0.0.1:8085", help: "host:port for /readyz, /metrics" },
    leaseDurationMs: { fallback: "15000", help: "of the leader's lease" },
    logLevel: { fallback: "info", help: "trace, debug, info, warn, error, fatal or silent" },
  },
};
