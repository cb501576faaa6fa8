// The settings of the example operator. src/base/settings.ts reads them.
import { z } from "zod";
import {
  type CommandLine,
  listenAddress,
  logLevel,
  milliseconds,
  requiredText,
  type Settings,
  schemaOf,
} from "../../src/runtime/index.ts";

const settings = {
  kubeconfig: { type: z.string(), fallback: "", help: "file; empty: KUBECONFIG or in-cluster" },
  namespace: { type: requiredText, fallback: "default", help: "of the lease, the words, the directory" },
  podName: { type: requiredText, fallback: "greeting-operator-0", help: "name of this replica" },
  healthListen: { type: listenAddress, fallback: "127.0.0.1:8085", help: "host:port for /readyz, /metrics" },
  leaseDurationMs: { type: milliseconds(1_000, 3_600_000), fallback: "15000", help: "of the leader's lease" },
  logLevel: { type: logLevel, fallback: "info", help: "trace, debug, info, warn, error, fatal or silent" },
} satisfies Settings;
const schema = schemaOf(settings);

export type OperatorConfig = z.output<typeof schema>;

export const operatorCommandLine: CommandLine<typeof schema> = {
  title: "greeting-operator: keeps a ConfigMap for each Greeting, on the controller runtime of Controller Mesh",
  prefix: "GREETING",
  schema,
  settings,
};
