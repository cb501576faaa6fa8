// What the flows share: the nodes, kubectl, a reader's shell, and the measurement of each flow.
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import type { OwnerChange } from "../chaos/ownership-check.ts";
import { eventually } from "../support/eventually.ts";
import { REGISTRY } from "../support/helm.ts";
import { type InstalledMesh, meshOn } from "../support/install/world.ts";
import { clusterOf } from "./cluster.ts";
import { type Forwarding, forwardLoopback } from "./forwarding.ts";
import { type RealNodes, startRealNodes } from "./nodes.ts";
import { addRow } from "./table.ts";
import { longestPauseMs, operatorWrites, overlaps, type SteadyChanges, steadyChanges, wrongWriters } from "./writes.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const FLOW_MS = 300_000;

export interface World extends InstalledMesh, RealNodes {
  readonly changes: SteadyChanges;
  /** The namespaces whose writes are judged, with their owners over time. */
  owners: Record<string, OwnerChange[]>;
  /** When the operator's pods had their sidecars. */
  adoptedMs: number;
  /** The namespace of the operator's pods, whose restarts are counted. */
  operatorNamespace: string;
  /** From now on judges the writes of pods of the namespace in these namespaces. */
  judge(operatorNamespace: string, namespaces: readonly string[]): void;
  /** A pod's loopback, by `kubectl port-forward`. */
  forwardLoopback(namespace: string, pod: string, port: number): Promise<Forwarding>;
  /** Runs commands as a reader does, in the folder of the project. Returns what they print. */
  bash(commands: string): Promise<string>;
}

export async function startWorld(folder: string): Promise<World> {
  const startedMs = Date.now();
  const started = await startRealNodes(folder);
  addRow(folder, { flow: "node up: control plane, images imported, CoreDNS ready", seconds: (Date.now() - startedMs) / 1000 });
  const env = { ...process.env, KUBECONFIG: started.kube.kubeconfig, REGISTRY };
  const world: World = {
    ...meshOn(clusterOf(started)),
    ...started,
    changes: steadyChanges(started.kube),
    owners: {},
    adoptedMs: 0,
    operatorNamespace: "foo-system",
    judge(operatorNamespace, namespaces) {
      world.operatorNamespace = operatorNamespace;
      world.owners = Object.fromEntries(namespaces.map((name) => [name, []]));
    },
    forwardLoopback: (namespace, pod, port) => forwardLoopback(started.kube.kubeconfig, namespace, pod, port),
    async bash(commands) {
      const options = { cwd: ROOT, env, timeout: FLOW_MS, maxBuffer: 16 * 1024 * 1024 };
      return (await promisify(execFile)("bash", ["-euo", "pipefail", "-c", commands], options)).stdout;
    },
  };
  return world;
}

/** A test whose time, pauses and restarts are a row of the table, and in which no two pods may write in a namespace at once. */
export function flow(name: string, world: () => World, work: (world: World) => Promise<void>): void {
  it(name, { timeout: FLOW_MS + 60_000 }, async () => {
    const own = world();
    const before = await podsOf(own);
    const judged = Object.keys(own.owners);
    const startedMs = Date.now();
    await work(own);
    const endedMs = Date.now();
    const after = await podsOf(own);
    const seconds = (endedMs - startedMs) / 1000;
    const namespaces = Object.keys(own.owners);
    if (namespaces.length === 0) return addRow(own.folder, { flow: name, seconds });
    await eventually(() => namespaces.every((each) => lastWriteMs(own, each) > endedMs), 30_000);
    const writes = operatorWrites(own.kube, namespaces, startedMs - 5_000);
    // A namespace whose objects began to change in this flow has no pauses yet.
    const all = judged.filter((each) => namespaces.includes(each));
    addRow(own.folder, {
      flow: name,
      seconds,
      ...(all.length === 0 ? {} : { pauseSeconds: longestPauseMs(writes, all, startedMs, endedMs) / 1000 }),
      ...changesOf(before, after),
    });
    expect(overlaps(writes)).toEqual([]);
  });
}

/** Subsets by the names of the quickstart's pods. */
export function subsetOf(pod: string): string | undefined {
  if (pod.startsWith("foo-canary-")) return "v2";
  return pod.startsWith("foo-") ? "" : undefined;
}

/** Writes by pods of a subset that did not own the namespace, since the operator is in the mesh, as text. */
export function wrongWritersOf(world: World): string[] {
  const namespaces = Object.keys(world.owners);
  return wrongWriters(operatorWrites(world.kube, namespaces, world.adoptedMs), subsetOf, world.owners);
}

function lastWriteMs(world: World, namespace: string): number {
  return operatorWrites(world.kube, [namespace], 0).at(-1)?.answeredMs ?? 0;
}

/** The restarts of containers, by the uids of their pods. */
export type Pods = ReadonlyMap<string, number>;

interface PodRestarts {
  readonly metadata: { readonly uid: string };
  readonly status: {
    readonly containerStatuses?: readonly { readonly restartCount: number }[];
    readonly initContainerStatuses?: readonly { readonly restartCount: number }[];
  };
}

/** @param namespace default: that of the operator */
export async function podsOf(world: World, namespace = world.operatorNamespace): Promise<Pods> {
  const { items } = await world.get<{ items: PodRestarts[] }>("pods", "-n", namespace);
  return new Map(
    items.map(({ metadata, status }) => {
      const all = [...(status.containerStatuses ?? []), ...(status.initContainerStatuses ?? [])];
      return [metadata.uid, all.reduce((sum, { restartCount }) => sum + restartCount, 0)];
    }),
  );
}

function changesOf(before: Pods, after: Pods): { restarts: number; newPods: number } {
  const all = [...after];
  return {
    restarts: all.reduce((sum, [uid, count]) => sum + count - (before.get(uid) ?? 0), 0),
    newPods: all.filter(([uid]) => !before.has(uid)).length,
  };
}
