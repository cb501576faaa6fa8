// The manager's replicas: each a process with ports of its own, one lease for all, and the Service by which proxies reach them. A
// replica that ends by itself, as one that lost the lease does, comes back, as a container would.
import { join } from "node:path";
import { startChild } from "../child-process.ts";
import type { Kube } from "../kube.ts";
import { type Service, startService } from "../service.ts";
import { type Supervised, supervise } from "../supervised.ts";
import { ROOT } from "./cluster.ts";

export interface ManagersOptions {
  readonly kube: Kube;
  /** By which they reach the control plane; default: as its administrator. */
  readonly kubeconfig?: string;
  readonly replicas: number;
  readonly leaseDurationMs: number;
  readonly verbose: boolean;
  /** Where the Service sends a connection: numbers from 0 to 1. */
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

function startReplica(index: number, { kube, kubeconfig, leaseDurationMs, verbose }: ManagersOptions): Promise<Supervised> {
  const name = `ctrlmesh-manager-${index}`;
  // The ports that it gets the first time are its own from then on: a replica keeps its address.
  let grpc = "127.0.0.1:0";
  const launch = async () => {
    const child = await startChild({
      name,
      command: process.execPath,
      args: [
        join(ROOT, "src/manager/main.ts"),
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
        String(kube.tokenCacheMs),
        "--restart-settle-ms",
        "2000",
        "--log-level",
        "debug",
      ],
      verbose,
    });
    grpc = String(child.ready.grpc);
    return child;
  };
  return supervise({ launch });
}
