// The sharded family of a chaos run: a root ShardingConfig over a StatefulSet. The real StatefulSet
// controller makes the pods, and the fixture runs them. Its operator works on the same Foos as that of the
// VirtualApp, in ConfigMaps of its own.

import { SHARDING_CONFIGS } from "../../src/api/resources.ts";
import { PODS, STATEFUL_SETS } from "../../src/kube/client/resources.ts";
import { injectedWorkload } from "../support/injected-workload.ts";
import type { Mesh } from "../support/mesh.ts";
import { type RunnerPod, startPodRunner } from "../support/pod-runner.ts";
import { followRoot } from "../support/sharding/follow-root.ts";
import { familyRoot } from "../support/sharding-config.ts";
import { createRootHistory } from "./root-history.ts";

export const FAMILY = { namespace: "foo-system", name: "bar-operator" } as const;
export const REPLICAS = { least: 2, most: 4 } as const;
const STATEFUL_SET = { namespace: FAMILY.namespace, name: "bar" } as const;
const PREFIX = "bar";
const START_REPLICAS = 3;
const REQUEST_MS = 3_000;

/** A part of `spec.root.canary`. */
export interface CanaryPart {
  readonly inNamespaces: readonly string[];
  readonly percent: number | null;
}

export interface ChaosFamily {
  /** The pods with existing objects, by name. */
  readonly pods: ReadonlyMap<string, RunnerPod>;
  readonly replicas: number;
  /** The shard of a pod by its name; undefined if it is not the family's. */
  shardOf(pod: string): string | undefined;
  /** The shard that is to have the namespace now. */
  ownerOf(namespace: string): string | undefined;
  ownersOf(namespace: string): ReturnType<ReturnType<typeof createRootHistory>["ownersOf"]>;
  scale(replicas: number): Promise<void>;
  editCanary(part: CanaryPart): Promise<void>;
  /** Deletes a pod. Its StatefulSet replaces it. */
  deletePod(name: string): Promise<void>;
  stop(): Promise<void>;
}

export interface FamilyOptions {
  readonly mesh: Mesh;
  readonly verbose: boolean;
  /** The proxies know the managers by the mesh's identity. */
  readonly identity: boolean;
  /** Repeats a request until the API server accepts it. */
  repeatUntilAccepted(send: () => Promise<unknown>): Promise<void>;
}

export async function startChaosFamily({ mesh, verbose, identity, repeatUntilAccepted }: FamilyOptions): Promise<ChaosFamily> {
  const { client, kube } = mesh;
  const history = createRootHistory(PREFIX);
  let replicas = START_REPLICAS;
  await mesh.apply(root());
  await mesh.apply(injectedWorkload({ kind: "StatefulSet", ...STATEFUL_SET, replicas, version: "v1", app: FAMILY.name }));
  const runner = startPodRunner({
    kube,
    client,
    verbose,
    namespace: FAMILY.namespace,
    manager: mesh.managerAddress,
    lockName: FAMILY.name,
    identity,
    operatorFlags: ["--beside"],
    labelSelector: `component=${FAMILY.name}`,
  });
  const stopping = new AbortController();
  const { signal } = stopping;
  const following = followRoot(client, FAMILY, history, signal);
  return {
    pods: runner.pods,
    get replicas() {
      return replicas;
    },
    shardOf,
    ownerOf: history.ownerOf,
    ownersOf: history.ownersOf,
    async scale(next) {
      replicas = next;
      const patch = { type: "merge", body: { spec: { replicas } } } as const;
      await repeatUntilAccepted(() => client.patch(STATEFUL_SETS, STATEFUL_SET, patch, { timeoutMs: REQUEST_MS }));
    },
    async editCanary(canary) {
      const patch = { type: "merge", body: { spec: { root: { canary } } } } as const;
      await repeatUntilAccepted(() => client.patch(SHARDING_CONFIGS, FAMILY, patch, { timeoutMs: REQUEST_MS }));
    },
    async deletePod(name) {
      await client.delete(PODS, { namespace: FAMILY.namespace, name }, { timeoutMs: REQUEST_MS }).catch(() => undefined);
    },
    async stop() {
      stopping.abort();
      await following;
      await runner.stop();
    },
  };
}

function shardOf(pod: string): string | undefined {
  const ordinal = /^bar-(\d+)$/.exec(pod)?.[1];
  if (ordinal === undefined) return undefined;
  return ordinal === "0" ? `${PREFIX}-0-canary` : `${PREFIX}-${ordinal}-normal`;
}

function root(): string {
  return JSON.stringify(
    familyRoot(FAMILY, {
      statefulSet: STATEFUL_SET.name,
      canary: { replicas: 1, inNamespaces: ["n01"] },
      // Shorter than some of the stops, so that shards leave and come back.
      auto: { everyShardReplicas: 1, graceSeconds: 8, maxMovedPercentPerHour: 10_000 },
      resources: [
        ["demo.ctrlmesh.io", "foos"],
        ["", "configmaps"],
      ],
    }),
  );
}
