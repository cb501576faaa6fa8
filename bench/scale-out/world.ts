// The world of the scale-out bench: a real control plane with Foos in many namespaces, a manager, a root ShardingConfig, and the pods of its
// StatefulSet. No StatefulSet controller runs, so the API server's process does nothing else: the fixture makes the pods.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SHARDING_CONFIGS } from "../../src/api/resources.ts";
import { eventually } from "../../test/support/eventually.ts";
import { injectedWorkload } from "../../test/support/injected-workload.ts";
import { startKube } from "../../test/support/kube.ts";
import type { PodWorld } from "../../test/support/mesh/pod.ts";
import { FOOS, type Mesh, startMesh } from "../../test/support/mesh.ts";
import { familyRoot } from "../../test/support/sharding-config.ts";
import { type BenchPod, startBenchPod } from "./pod.ts";

export interface ScaleOutWorld {
  readonly apiServerPid: number;
  readonly managerPid: number;
  readonly pods: readonly BenchPod[];
  /** Makes so many shards of one pod each, and waits until each has namespaces. The operators do not run yet. */
  scale(shards: number): Promise<void>;
  /** One pod without a proxy. */
  addDirectPod(): Promise<void>;
  /** @throws Error if a Foo has not been reconciled */
  expectAllReconciled(): Promise<void>;
  stop(): Promise<void>;
}

export interface ScaleOutOptions {
  readonly namespaces: number;
  readonly foos: number;
  /** The program of the proxies. */
  readonly proxyMain: string;
  /** Flags of the operators. */
  readonly flags: readonly string[];
}

const NAMESPACE = "foo-system";
const ROOT = { namespace: NAMESPACE, name: "foo-operator" };
const STATEFUL_SET = "foo";
/** With it a Foo has about 1 KB, as its ConfigMap. */
const MESSAGE = "x".repeat(700);
const PARALLEL = 32;

export async function startScaleOutWorld(options: ScaleOutOptions): Promise<ScaleOutWorld> {
  const kube = await startKube();
  const mesh = await startMesh({ kube });
  const dir = mkdtempSync(join(tmpdir(), "ctrlmesh-scale-out-"));
  const namespaces = Array.from({ length: options.namespaces }, (_, index) => `team-${String(index).padStart(3, "0")}`);
  const pods: BenchPod[] = [];
  const world: PodWorld = {
    kube,
    client: mesh.client,
    appNamespace: NAMESPACE,
    manager: mesh.managerAddress,
    proxyMain: options.proxyMain,
    dir,
    identity: false,
    restarts: false,
    verbose: false,
    managerOutput: () => mesh.manager.output(),
  };
  const add = async (app: string | undefined) => {
    pods.push(await startBenchPod({ world, name: `${STATEFUL_SET}-${pods.length}`, app, flags: options.flags }));
  };
  await inParallel(namespaces, (name) => mesh.createNamespace(name));
  const foos = Array.from({ length: options.foos }, (_, index) => index);
  await inParallel(foos, async (index) => {
    await mesh.createFoo(namespaces[index % namespaces.length] ?? "", `foo-${index}`, MESSAGE);
  });
  return {
    apiServerPid: kube.pid,
    managerPid: mesh.manager.pid,
    pods,
    addDirectPod: () => add(undefined),
    async scale(shards) {
      const workload = { kind: "StatefulSet", name: STATEFUL_SET, replicas: shards, version: "v1" } as const;
      await mesh.apply(injectedWorkload(workload));
      await mesh.apply(root());
      while (pods.length < shards) await add(ROOT.name);
      await eventually(() => expectShards(mesh, shards), 60_000);
    },
    async expectAllReconciled() {
      const { items } = await mesh.client.list(FOOS);
      const late = items.filter(({ metadata, status }) => status?.observedGeneration !== metadata.generation);
      if (items.length !== options.foos || late.length > 0)
        throw new Error(`${late.length} of ${items.length} Foos are not done`);
    },
    async stop() {
      await Promise.all(pods.map((pod) => pod.stop()));
      await mesh.stop();
      await kube.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

async function expectShards({ client }: Mesh, shards: number): Promise<void> {
  const { metadata, status } = await client.get(SHARDING_CONFIGS, ROOT);
  const converged = status?.conditions?.find(({ type }) => type === "Converged");
  const owning = (status?.subsets ?? []).filter(({ name, namespaces }) => name !== "default" && namespaces > 0);
  if (converged?.status !== "True" || converged.observedGeneration !== metadata.generation || owning.length !== shards)
    throw new Error(`there are no ${shards} shards: ${JSON.stringify(status)}`);
}

function root(): string {
  return JSON.stringify(
    familyRoot(ROOT, {
      statefulSet: STATEFUL_SET,
      resources: [
        ["demo.ctrlmesh.io", "foos"],
        ["", "configmaps"],
      ],
    }),
  );
}

async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  const left = items.values();
  const worker = async () => {
    for (const item of left) await work(item);
  };
  await Promise.all(Array.from({ length: PARALLEL }, worker));
}
