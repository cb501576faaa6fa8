// The programs under siege, started as the chart starts them: their flags, and the heap that V8 takes in a
// container with the chart's limit (half of it). Like a container, a program that ends is started again, at
// its old ports.
import { join } from "node:path";
import { type Child, startChild } from "../support/child-process.ts";
import { freePort } from "../support/free-port.ts";
import { ROOT } from "../support/mesh/cluster.ts";
import { readImage } from "../support/program-image.ts";
import { createProxyLauncher, type ProxyLauncherOptions } from "../support/proxy-launcher.ts";
import { type Supervised, supervise } from "../support/supervised.ts";
import type { Endpoint } from "./attack.ts";

/** Of 1Gi (charts/ctrlmesh/values.yaml) and of 512Mi (src/manager/injection/plan.ts), in MiB. */
const MANAGER_HEAP = "--max-old-space-size=512";
const SIDECAR_HEAP = "--max-old-space-size=256";
const HOST = "127.0.0.1";
const LAST_LINES = 12;

export interface Program {
  readonly name: string;
  readonly supervised: Supervised;
  /** What each process of it that has ended said last. */
  readonly deaths: readonly string[];
}

export interface Manager extends Program {
  readonly webhook: Endpoint;
  readonly mesh: Endpoint;
  readonly health: Endpoint;
}

/** Beside it is the folder `proxy` with the sidecar's. Default: the sources. */
export interface Build {
  readonly proxyMain: string;
  readonly managerMain: string;
}

export const SOURCES: Build = { proxyMain: join(ROOT, "src/proxy/main.ts"), managerMain: join(ROOT, "src/manager/main.ts") };

export async function startManager(kubeconfig: string, { managerMain }: Build): Promise<Manager> {
  const [webhook, mesh, health] = [await endpoint(), await endpoint(), await endpoint()];
  const text = ({ host, port }: Endpoint) => `${host}:${port}`;
  const image = readImage("manager");
  const args = [
    ...[
      MANAGER_HEAP,
      ...image.nodeFlags,
      managerMain,
      "--print-ready",
      "--kubeconfig",
      kubeconfig,
      "--pod-name",
      "ctrlmesh-manager-0",
    ],
    "--grpc-listen",
    text(mesh),
    "--health-listen",
    text(health),
    "--webhook-listen",
    text(webhook),
    "--identity",
    "mesh",
    "--server-names",
    HOST,
    "--proxy-image",
    "example.invalid/ctrlmesh/proxy",
  ];
  const launch = () => startChild({ name: "manager", command: process.execPath, args, env: image.env });
  return { ...(await watched("manager", launch)), webhook, mesh, health };
}

export function startSidecar(name: string, options: ProxyLauncherOptions, { proxyMain }: Build): Promise<Program> {
  const flags = { "log-level": "info", ...options.flags };
  return watched(name, createProxyLauncher({ ...options, proxyMain, flags, env: { NODE_OPTIONS: SIDECAR_HEAP } }));
}

async function endpoint(): Promise<Endpoint> {
  return { host: HOST, port: await freePort() };
}

async function watched(name: string, launch: () => Promise<Child>): Promise<Program> {
  const deaths: string[] = [];
  const supervised = await supervise({
    async launch() {
      const child = await launch();
      void child.ended.then(() => deaths.push(child.output().split("\n").slice(-LAST_LINES).join("\n")));
      return child;
    },
  });
  return { name, supervised, deaths };
}
