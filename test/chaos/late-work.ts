// Finds state that has not converged: Foos that their owner has not reconciled after the last edit,
// ConfigMaps with another content, and a VirtualApp or a family with a handover. If it finds nothing, no work
// was lost.

import { SHARDING_CONFIGS, VIRTUAL_APPS } from "../../src/api/resources.ts";
import type { ShardingConfig } from "../../src/api/sharding-config.ts";
import type { VirtualApp } from "../../src/api/virtual-app.ts";
import { CONFIG_MAPS, LEASES, type Lease } from "../../src/kube/client/resources.ts";
import { microTimeMs } from "../support/mesh/pod-writes.ts";
import { FOOS } from "../support/mesh.ts";
import { APP } from "./desired-owners.ts";
import { FAMILY } from "./family.ts";
import type { Leader } from "./informers.ts";
import { ownerOfLock } from "./places.ts";
import type { ChaosWorld } from "./world.ts";

const LIMITS = { timeoutMs: 5_000 };

/** Work that is not complete yet. */
export interface LateWork {
  readonly problem: string;
  /** The subset that owns the work. */
  readonly owner: string;
}

export interface Late {
  /** The problems of ownership, by the statuses of the two apps. */
  readonly ownership: readonly string[];
  /** The work that the operators have not completed yet. */
  readonly work: readonly LateWork[];
  /** The leader of each subset that has one. */
  readonly leaders: ReadonlyMap<string, Leader>;
}

/**
 * A description of everything that has not converged.
 * @throws Error if the API server does not respond
 */
export async function findLate(world: ChaosWorld): Promise<Late> {
  const { client } = world.mesh;
  const [foos, maps, app, family, leases] = await Promise.all([
    client.list(FOOS, LIMITS),
    client.list(CONFIG_MAPS, LIMITS),
    client.get(VIRTUAL_APPS, APP, LIMITS),
    client.get(SHARDING_CONFIGS, FAMILY, LIMITS),
    client.list(LEASES, LIMITS),
  ]);
  const written = new Map(maps.items.map(({ metadata, data }) => [`${metadata.namespace}/${metadata.name}`, data]));
  const work: LateWork[] = [];
  for (const { metadata, spec, status } of foos.items) {
    const { namespace = "", name, generation } = metadata;
    const by = status?.reconciledBy ?? "";
    const owner = world.owners.ownerOf(namespace);
    const add = (problem: string) => work.push({ owner, problem: `${namespace}/${name}: ${problem}` });
    if (status?.observedGeneration !== generation)
      add(`generation ${generation}, observed ${status?.observedGeneration ?? "none"} by ${by || "no pod"}`);
    else if (world.subsetOf(by) !== owner) add(`reconciled by ${by || "no pod"}, owned by "${owner}"`);
    else if (written.get(`${namespace}/${name}-data`)?.message !== spec?.message)
      add("its ConfigMap does not have the Foo's message");
    const shard = world.family.ownerOf(namespace) ?? "no shard";
    const { message, by: sharded = "no pod" } = written.get(`${namespace}/${name}-beside`) ?? {};
    if (message !== spec?.message || world.family.shardOf(sharded) !== shard)
      work.push({ owner: shard, problem: `${namespace}/${name}-beside: written by ${sharded}, owned by "${shard}"` });
  }
  return { ownership: [...unconverged(app), ...unconverged(family)], work, leaders: leadersOf(leases.items) };
}

function unconverged({ metadata: { name, generation }, status }: VirtualApp | ShardingConfig): string[] {
  const { conditions = [], observedGeneration } = status ?? {};
  const problems = observedGeneration === generation ? [] : [`the status of ${name} describes an older generation`];
  for (const type of ["Converged", "Ready"]) {
    const condition = conditions.find((one) => one.type === type);
    if (condition?.status !== "True")
      problems.push(`${type} of ${name} is ${condition?.status ?? "absent"}: ${condition?.reason} ${condition?.message}`);
  }
  return problems;
}

/** The holder of the lock of each subset and shard, if it renewed the lock in time. */
function leadersOf(leases: readonly Lease[]): Map<string, Leader> {
  const leaders = new Map<string, Leader>();
  for (const { metadata, spec } of leases) {
    const { holderIdentity, acquireTime, renewTime, leaseDurationSeconds } = spec ?? {};
    const subset = ownerOfLock(metadata.name ?? "");
    if (metadata.namespace !== APP.namespace || subset === undefined || !holderIdentity || !acquireTime || !renewTime) continue;
    if (microTimeMs(renewTime) + (leaseDurationSeconds ?? 0) * 1000 < Date.now()) continue;
    leaders.set(subset, { pod: holderIdentity.split("_")[0] ?? "", sinceMs: microTimeMs(acquireTime) });
  }
  return leaders;
}
