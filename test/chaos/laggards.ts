// What is not as it was asked for: Foos whose last edit was not reconciled, or not by their owner, ConfigMaps that say something else,
// and a VirtualApp that does not say that it is done. Empty: no work was lost, and everything has converged.

import { VIRTUAL_APPS } from "../../src/api/resources.ts";
import { CONFIG_MAPS, LEASES, type Lease } from "../../src/kube/client/resources.ts";
import { microTimeMs } from "../support/mesh/pod-writes.ts";
import { FOOS } from "../support/mesh.ts";
import type { Leader } from "./informers.ts";
import { CANARY } from "./ledger.ts";
import { APP, type ChaosWorld } from "./world.ts";

const LIMITS = { timeoutMs: 5_000 };

/** Work that lags. */
export interface Lag {
  readonly words: string;
  /** The subset that is to do it. */
  readonly owner: string;
}

export interface Laggards {
  /** What the VirtualApp says of ownership: the mesh's part. */
  readonly mesh: readonly string[];
  /** What the operators have not done yet. */
  readonly work: readonly Lag[];
  /** Who leads each subset, where somebody does. */
  readonly leaders: ReadonlyMap<string, Leader>;
}

/** Everything that lags, in words. @throws Error if the API server cannot be asked */
export async function laggards(world: ChaosWorld): Promise<Laggards> {
  const { client } = world.mesh;
  const [foos, maps, app, leases] = await Promise.all([
    client.list(FOOS, LIMITS),
    client.list(CONFIG_MAPS, LIMITS),
    client.get(VIRTUAL_APPS, APP, LIMITS),
    client.list(LEASES, LIMITS),
  ]);
  const messages = new Map(maps.items.map(({ metadata, data }) => [`${metadata.namespace}/${metadata.name}`, data?.message]));
  const work: Lag[] = [];
  for (const { metadata, spec, status } of foos.items) {
    const { namespace = "", name, generation } = metadata;
    const by = status?.reconciledBy ?? "";
    const owner = world.ledger.ownerOf(namespace);
    const late = (what: string) => work.push({ owner, words: `${namespace}/${name}: ${what}` });
    if (status?.observedGeneration !== generation)
      late(`generation ${generation}, observed ${status?.observedGeneration ?? "none"} by ${by || "nobody"}`);
    else if (world.subsetOf(by) !== owner) late(`reconciled by ${by || "nobody"}, owned by "${owner}"`);
    else if (messages.get(`${namespace}/${name}-data`) !== spec?.message) late("its ConfigMap does not have the Foo's message");
  }
  const mesh: string[] = [];
  const { conditions = [], observedGeneration } = app.status ?? {};
  if (observedGeneration !== app.metadata.generation) mesh.push("the VirtualApp's status is of an older generation");
  for (const type of ["Converged", "Ready"]) {
    const condition = conditions.find((one) => one.type === type);
    if (condition?.status !== "True")
      mesh.push(`${type} is ${condition?.status ?? "absent"}: ${condition?.reason} ${condition?.message}`);
  }
  return { mesh, work, leaders: leadersOf(leases.items) };
}

/** Of each subset whoever holds its lock, and has renewed it in time. */
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
