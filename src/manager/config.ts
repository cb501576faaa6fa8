// The manager's settings. See src/base/settings.ts for how they are read.
import { z } from "zod";
import { type CommandLine, listenAddress, logLevel, requiredText } from "../base/settings.ts";

const LOOPBACK = /^(127\.\d+\.\d+\.\d+|::1|localhost)$/;

const schema = z.object({
  kubeconfig: z.string(),
  namespace: requiredText,
  podName: requiredText,
  podIP: z.string(),
  grpcListen: listenAddress.refine(
    ({ host }) => LOOPBACK.test(host),
    "must be a loopback address: the stream to the proxies is not authenticated yet (docs/design.md, Limitations)",
  ),
  healthListen: listenAddress,
  logLevel,
  restartSettleMs: z.coerce.number({ error: "must be a number of milliseconds" }).int().min(0).max(240_000),
  leaseDurationMs: z.coerce.number({ error: "must be a number of milliseconds" }).int().min(1_000).max(3_600_000),
});

/** What the manager runs with. */
export type ManagerConfig = z.output<typeof schema>;

export const managerCommandLine: CommandLine<typeof schema> = {
  title: "ctrlmesh-manager: decides which subset of an operator owns which namespaces",
  schema,
  settings: {
    kubeconfig: {
      flag: "kubeconfig",
      env: "CTRLMESH_KUBECONFIG",
      fallback: "",
      help: "kubeconfig file; empty: KUBECONFIG or in-cluster",
    },
    namespace: {
      flag: "namespace",
      env: "CTRLMESH_NAMESPACE",
      fallback: "ctrlmesh-system",
      help: "namespace of the manager and of its lease",
    },
    podName: { flag: "pod-name", env: "CTRLMESH_POD_NAME", fallback: "ctrlmesh-manager-0", help: "name of this replica" },
    podIP: { flag: "pod-ip", env: "CTRLMESH_POD_IP", fallback: "127.0.0.1", help: "address of this replica, told to proxies" },
    grpcListen: {
      flag: "grpc-listen",
      env: "CTRLMESH_GRPC_LISTEN",
      fallback: "127.0.0.1:5447",
      help: "host:port for the proxies",
    },
    healthListen: {
      flag: "health-listen",
      env: "CTRLMESH_HEALTH_LISTEN",
      fallback: "0.0.0.0:5448",
      help: "host:port for /healthz, /readyz and /metrics",
    },
    logLevel: {
      flag: "log-level",
      env: "CTRLMESH_LOG_LEVEL",
      fallback: "info",
      help: "trace, debug, info, warn, error, fatal or silent",
    },
    restartSettleMs: {
      flag: "restart-settle-ms",
      env: "CTRLMESH_RESTART_SETTLE_MS",
      fallback: "20000",
      help: "how long routes stay as they are before pods that lost namespaces are restarted",
    },
    leaseDurationMs: {
      flag: "lease-duration-ms",
      env: "CTRLMESH_LEASE_DURATION_MS",
      fallback: "15000",
      help: "how long a silent leader keeps its lease",
    },
  },
};
