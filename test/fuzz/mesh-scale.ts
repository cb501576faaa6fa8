// Scaled families in the mesh tests: the real placement decides which shards own which namespaces, by the size of a StatefulSet, by which pods are
// ready, and by the grace time. The placement is kept as the text that a root carries. The shards are the subsets of mesh-objects.ts.
import { type Placement, placementOf, placer } from "../../src/manager/sharding/placement.ts";
import { formatPlacement, readPlacement } from "../../src/manager/sharding/stored-placement.ts";
import { NAMESPACES } from "./mesh-checks.ts";
import { BUCKET } from "./mesh-family.ts";
import type { MeshWorld } from "./mesh-model.ts";
import { type Rules, SUBSETS } from "./mesh-objects.ts";

/** By the number of the shard; there is no shard 0. */
const SHARDS = SUBSETS.filter((subset) => subset !== "");
export const MOST_REPLICAS = SHARDS.length;
/** A step of a script can take longer. */
const GRACE_SECONDS = 30;

export interface Scale {
  replicas: number;
  /** Undefined before the first placement. */
  stored: string | undefined;
}

/** Changes the StatefulSet: pods of shards that it no longer has end at once, and a shard that comes gets a pod under this name, if it is free. */
export function scaleTo(world: MeshWorld, scale: Scale, replicas: number, name: string): void {
  const { wanted } = world.cluster;
  scale.replicas = replicas;
  for (const [pod, { subset = "" }] of [...wanted]) {
    if (SHARDS.indexOf(subset) >= replicas) world.cluster.scaleDown(pod);
  }
  const subset = SHARDS[replicas - 1];
  if (subset !== undefined && !world.hasPod(name)) world.setPod(name, { subset, controlled: true });
}

/** What the placement controller does: places by the facts of now, and stores that. Returns who is to own what. */
export function placeNow(world: MeshWorld, scale: Scale): Pick<Rules, "owners" | "bucket"> {
  const previous = storedOf(scale);
  const step = placementOf({
    previous,
    nowMs: world.clock.now(),
    namespaces: NAMESPACES,
    ready: new Set(readyShards(world)),
    restarting: new Set(),
    root: {
      canary: undefined,
      auto: { everyShardReplicas: 1, graceSeconds: GRACE_SECONDS, maxMovedPercentPerHour: 10_000 },
      placement: "Balanced",
    },
    statefulSet: { replicas: scale.replicas, start: 0 },
  });
  if (step === undefined) throw new Error("no placement, though there is a StatefulSet");
  scale.stored = JSON.stringify(formatPlacement(step.placement));
  const shardOf = placer(step.placement);
  const subsetOf = (shard: number | undefined) => SHARDS[(shard ?? 0) - 1] ?? "";
  const owners = NAMESPACES.map((name) => [name, subsetOf(shardOf(name))]);
  return {
    owners: { ...Object.fromEntries(owners), "": subsetOf(step.placement.active[0]) },
    bucket: subsetOf(shardOf(BUCKET)),
  };
}

/** At rest, judged without the placement's own code: shards with a ready pod have namespaces, and those that the StatefulSet lacks have none. */
export function expectScaled(world: MeshWorld, scale: Scale): void {
  const active = storedOf(scale)?.active ?? [];
  const ready = readyShards(world).filter((shard) => shard <= scale.replicas);
  const isRight = ready.every((shard) => active.includes(shard)) && active.every((shard) => shard <= Math.max(1, scale.replicas));
  // Without a shard to take over, the last ones stay.
  const isStuck = ready.length === 0 && active.length > 0;
  if (!isRight && !isStuck) throw new Error(`shards ${active} are active, ${ready} are ready, of ${scale.replicas}`);
  if (ready.length > 0 && active.some((shard) => !ready.includes(shard)))
    throw new Error(`shards ${active} are active long after only ${ready} are ready`);
}

/** What a table depends on: not how long a shard has been away. */
export function activeText(scale: Scale): string {
  const stored = storedOf(scale);
  return stored === undefined
    ? ""
    : JSON.stringify(formatPlacement({ ...stored, away: new Map(), losses: new Map(), moves: [] }));
}

function storedOf({ stored }: Scale): Placement | undefined {
  const read = stored === undefined ? undefined : readPlacement(JSON.parse(stored));
  if (read?.ok === false) throw new Error(`a placement cannot be read: ${JSON.stringify(read.problems)}`);
  return read?.ok ? read.value : undefined;
}

function readyShards({ cluster }: MeshWorld): number[] {
  const ready = cluster.view.pods().filter(({ metadata, status }) => {
    const isReady = status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True");
    return isReady === true && status?.phase === "Running" && metadata.deletionTimestamp === undefined;
  });
  const subsets = new Set(ready.map(({ metadata }) => metadata.labels?.sub ?? ""));
  return SHARDS.flatMap((subset, index) => (subsets.has(subset) ? [index + 1] : []));
}
