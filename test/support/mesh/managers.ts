// The manager's replicas: processes with their own ports, one lease for all, and the Service by which proxies reach them. Like a
// container, a replica that ends by itself is restarted, for example after it has lost the lease.
import { startChild } from "../child-process.ts";
import type { Kube } from "../kube.ts";
import { programMain } from "../programs.ts";
import { type Service, startService } from "../service.ts";
import { type Supervised, supervise } from "../supervised.ts";

export interface ManagersOptions {
  readonly kube: Kube;
  /** The managers' access to the control plane; by default as its administrator. */
  readonly kubeconfig?: string;
  /** Proxies must prove which pod they are. */
  readonly identity: boolean;
  readonly replicas: number;
  readonly leaseDurationMs: number;
  readonly verbose: boolean;
  /** Random numbers from 0 to 1, with which the Service chooses a replica for each connection. */
  readonly random?: () => number;
}

export interface Managers {
  readonly all: readonly Supervised[];
  readonly service: Service;
  stop(): Promise<void>;
}

export async function startManagers(options: ManagersOptions): Promise<Managers> {
  const all: Supervised[] = [];
  const { random } = options;
  const service = await startService({
    backends: () => all.filter(({ isUp }) => isUp).map(({ child }) => String(child.ready.grpc)),
    ...(random === undefined ? {} : { random }),
  });
  for (let index = 0; index < options.replicas; index++) all.push(await startReplica(index, options));
  return {
    all,
    service,
    async stop() {
      await Promise.all(all.map((replica) => replica.stop(5_000)));
      await service.close();
    },
  };
}

/** The families of the tests of `labelObjects`, all of one namespace. */
const LABEL_FAMILIES = JSON.stringify(
  Object.fromEntries(
    ["configmaps", "pods", "foos.demo.ctrlmesh.io"].map((name) => [name, ["foo-system/shop", "foo-system/foo-operator"]]),
  ),
);

function startReplica(index: number, options: ManagersOptions): Promise<Supervised> {
  const { kube, kubeconfig, identity, leaseDurationMs, verbose } = options;
  const name = `ctrlmesh-manager-${index}`;
  // A replica keeps its first gRPC port, and so its address for proxies. The health port is a new one at each start.
  let grpc = "127.0.0.1:0";
  const launch = async () => {
    const child = await startChild({
      name,
      command: process.execPath,
      args: [
        programMain("manager"),
        "--print-ready",
        "--kubeconfig",
        kubeconfig ?? kube.kubeconfig,
        "--pod-name",
        name,
        "--grpc-listen",
        grpc,
        "--health-listen",
        "127.0.0.1:0",
        "--lease-duration-ms",
        String(leaseDurationMs),
        "--api-server-token-cache-ms",
        String(identity ? Math.max(kube.tokenCacheMs, 10_000) : kube.tokenCacheMs),
        "--restart-settle-ms",
        "1000",
        "--label-families",
        LABEL_FAMILIES,
        "--log-level",
        "debug",
        ...(identity ? ["--identity", "mesh", "--server-names", "127.0.0.1"] : []),
      ],
      verbose,
    });
    grpc = String(child.ready.grpc);
    return child;
  };
  return supervise({ launch });
}
