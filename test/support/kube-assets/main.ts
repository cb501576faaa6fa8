// Runs the control plane of KUBEBUILDER_ASSETS with the command line and the ready line of this project's binary (test/kube), so
// that test/support/kube.ts may start either. It prints one line on stdout once the API server is ready, nothing outlives it, and
// a second run finds all its state in --dir.

import { readFileSync } from "node:fs";
import { request } from "node:https";
import { connect } from "node:net";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { eventually } from "../eventually.ts";
import { apiServerArgs, controllerManagerArgs, etcdArgs, schedulerArgs } from "./args.ts";
import { type Component, startComponent } from "./component.ts";
import { type AssetName, kubeAssetsFolder } from "./folder.ts";
import { openState, type State } from "./state.ts";

const READY_MS = 60_000;
const GRACE_MS = 2_000;

const flag = { type: "boolean", default: false } as const;
const { values } = parseArgs({
  options: {
    dir: { type: "string" },
    port: { type: "string" },
    audit: flag,
    "controller-manager": flag,
    "node-controllers": flag,
    scheduler: flag,
    "feature-gates": { type: "string", default: "" },
    "apiserver-arg": { type: "string", multiple: true, default: [] },
    "controller-manager-arg": { type: "string", multiple: true, default: [] },
    "parent-pid": { type: "string" },
    "stdin-lifetime": flag,
  },
});

async function main(): Promise<void> {
  const {
    dir,
    "controller-manager": controllerManager,
    "node-controllers": nodeControllers,
    scheduler,
    "feature-gates": featureGates,
    "apiserver-arg": apiServerFlags,
    "controller-manager-arg": controllerManagerFlags,
  } = values;
  if (dir === undefined) throw new Error("--dir is required");
  const more: AssetName[] = [
    ...(controllerManager ? (["kube-controller-manager"] as const) : []),
    ...(scheduler ? (["kube-scheduler"] as const) : []),
  ];
  const assets = kubeAssetsFolder(more);
  if (assets === undefined) throw new Error(`KUBEBUILDER_ASSETS must hold etcd, kube-apiserver ${more.join(" ")}`);
  const stopped = untilStopped();
  stopped.catch(() => {}); // it may come before a wait
  const state = await openState(dir, { audit: values.audit, port: Number(values.port ?? 0), now: Date.now() });
  const options = { controllerManager, nodeControllers, featureGates, apiServerFlags, controllerManagerFlags };
  const components: Component[] = [];
  const add = (name: AssetName, args: readonly string[]) => {
    components.push(startComponent(name, join(assets, name), args, state.path("kube.log")));
  };
  try {
    // After kill -9 the programs of the last run end a moment after it.
    await eventually(() => portsAreFree(state), 10_000);
    add("etcd", etcdArgs(state));
    add("kube-apiserver", apiServerArgs(state, options));
    await orEnd(components, stopped, ready(state, "/readyz"));
    if (controllerManager) {
      add("kube-controller-manager", controllerManagerArgs(state, options));
      await orEnd(components, stopped, ready(state, "/api/v1/namespaces/default/serviceaccounts/default"));
    }
    if (scheduler) add("kube-scheduler", schedulerArgs(state, options));
    announce(state);
    await orEnd(components, stopped, new Promise(() => {}));
  } finally {
    for (const component of components.reverse()) await component.stop(GRACE_MS);
  }
}

class Stopped extends Error {}

/** Runs `work`, unless a component ends or a stop comes first. */
async function orEnd(components: readonly Component[], stopped: Promise<never>, work: Promise<unknown>): Promise<void> {
  const ends = components.map(async ({ ended }) => {
    throw new Error(await ended);
  });
  await Promise.race([work, stopped, ...ends]);
}

function untilStopped(): Promise<never> {
  return new Promise((_, reject) => {
    const stop = () => reject(new Stopped());
    process.once("SIGTERM", stop);
    process.once("SIGINT", stop);
    if (values["stdin-lifetime"]) process.stdin.resume().once("close", stop).once("end", stop);
    const parent = Number(values["parent-pid"] ?? 0);
    if (parent > 0) setInterval(() => isAlive(parent) || stop(), 500).unref();
  });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function portsAreFree({ ports }: State): Promise<boolean> {
  const taken = await Promise.all(
    Object.values(ports).map(
      (port: number) =>
        new Promise<boolean>((resolve) => {
          const socket = connect(port, "127.0.0.1");
          socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
          socket.once("connect", () => socket.destroy());
        }),
    ),
  );
  return !taken.includes(true);
}

async function ready(state: State, path: string): Promise<void> {
  const ca = readFileSync(state.path("ca.crt"));
  const answer = () =>
    new Promise<boolean>((resolve, reject) => {
      const options = { ca, headers: { authorization: `Bearer ${state.token}` }, agent: false as const, timeout: 5_000 };
      const sent = request(`${state.server}${path}`, options, (response) => resolve(response.resume().statusCode === 200));
      sent.once("error", reject).once("timeout", () => sent.destroy(new Error("no answer")));
      sent.end();
    });
  await eventually(answer, { withinMs: READY_MS, everyMs: 50 });
}

function announce(state: State): void {
  const facts = {
    server: state.server,
    kubeconfig: state.kubeconfig("admin"),
    ca: state.path("ca.crt"),
    token: state.token,
    auditLog: state.auditLog,
    pid: process.pid,
    startupMs: Math.round(performance.now()),
  };
  process.stdout.write(`${JSON.stringify(facts)}\n`);
}

try {
  await main();
} catch (error) {
  if (!(error instanceof Stopped)) {
    process.stderr.write(`kube-assets: ${error instanceof Error ? error.message : error}\n`);
    process.exitCode = 1;
  }
}
process.exit(); // stdin and timers must not keep the process alive
