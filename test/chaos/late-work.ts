// Finds state that has not converged: Foos that their owner has not reconciled after the last edit, ConfigMaps with another content, and
// a VirtualApp with a handover. If it finds nothing, no work was lost. Called by wait-converged.ts.

import { VIRTUAL_APPS } from "../../src/api/resources.ts";
import { CONFIG_MAPS, LEASES, type Lease } from "../../src/kube/client/resources.ts";
import { microTimeMs } from "../support/mesh/pod-writes.ts";
import { FOOS } from "../support/mesh.ts";
import { CANARY } from "./desired-owners.ts";
import type { Leader } from "./informers.ts";
import { APP, type ChaosWorld } from "./world.ts";

const LIMITS = { timeoutMs: 5_000 };

/** Work that is not complete yet. */
export interface LateWork {
  readonly problem: string;
  /** The subset that owns the work. */
  readonly owner: string;
}

export interface Late {
  /** The problems of ownership, by the status of the VirtualApp. */
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
  const [foos, maps, app, leases] = await Promise.all([
    client.list(FOOS, LIMITS),
    client.list(CONFIG_MAPS, LIMITS),
    client.get(VIRTUAL_APPS, APP, LIMITS),
    client.list(LEASES, LIMITS),
  ]);
  const messages = new Map(maps.items.map(({ metadata, data }) => [`${metadata.namespace}/${metadata.name}`, data?.message]));
  const work: LateWork[] = [];
  for (const { metadata, spec, status } of foos.items) {
    const { namespace = "", name, generation } = metadata;
    const by = status?.reconciledBy ?? "";
    const owner = world.owners.ownerOf(namespace);
    const add = (problem: string) => work.push({ owner, problem: `${namespace}/${name}: ${problem}` });
    if (status?.observedGeneration !== generation)
      add(`generation ${generation}, observed ${status?.observedGeneration ?? "none"} by ${by || "no pod"}`);
    else if (world.subsetOf(by) !== owner) add(`reconciled by ${by || "no pod"}, owned by "${owner}"`);
    else if (messages.get(`${namespace}/${name}-data`) !== spec?.message) add("its ConfigMap does not have the Foo's message");
  }
  const ownership: string[] = [];
  const { conditions = [], observedGeneration } = app.status ?? {};
  if (observedGeneration !== app.metadata.generation)
    ownership.push("the status of the VirtualApp describes an older generation");
  for (const type of ["Converged", "Ready"]) {
    const condition = conditions.find((one) => one.type === type);
    if (condition?.status !== "True")
      ownership.push(`${type} is ${condition?.status ?? "absent"}: ${condition?.reason} ${condition?.message}`);
  }
  return { ownership, work, leaders: leadersOf(leases.items) };
}

/** The holder of each subset's lock, if it renewed the lock in time. */
function leadersOf(leases: readonly Lease[]): Map<string, Leader> {
  const leaders = new Map<string, Leader>();
  for (const { metadata, spec } of leases) {
    const { holderIdentity, acquireTime, renewTime, leaseDurationSeconds } = spec ?? {};
    const subset = metadata.name === APP.name ? "" : metadata.name === `${APP.name}---${CANARY}` ? CANARY : undefined;
    if (metadata.namespace !== APP.namespace || subset === undefined || !holderIdentity || !acquireTime || !renewTime) continue;
    if (microTimeMs(renewTime) + (leaseDurationSeconds ?? 0) * 1000 < Date.now()) continue;
    leaders.set(subset, { pod: holderIdentity.split("_")[0] ?? "", sinceMs: microTimeMs(acquireTime) });
  }
  return leaders;
}
