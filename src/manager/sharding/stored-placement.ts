// The placement as the status of its root stores it. Pure. Invariants: equal placements give equal values; a
// placement that was read gives every namespace to an active shard; one that cannot be read counts as absent.
import type { z } from "zod";
import { type Problem, type ValidationResult, validate } from "../../api/problems.ts";
import type { ShardingStatus } from "../../api/sharding-config.ts";
import { MAX_NORMAL_SHARDS } from "../../api/sharding-keys.ts";
import { placementSchema } from "../../api/sharding-status.ts";
import { NAME_HASHES } from "../../kube/place.ts";
import { SLOTS, type SlotMap } from "./balanced-map.ts";
import type { Placement } from "./placement.ts";

export type StoredPlacement = NonNullable<ShardingStatus["placement"]>;

const schema = placementSchema
  .refine(({ active = [] }) => active.length > 0, { path: ["active"], error: "must not be empty" })
  .refine(({ active = [] }) => active.every((shard, at) => at === 0 || shard > (active[at - 1] ?? 0)), {
    path: ["active"],
    error: "must be ascending",
  })
  .refine(({ away, waiting, losses }) => [away, waiting, losses].every(hasShardKeys), {
    error: `must name shards by their numbers, from 1 to ${MAX_NORMAL_SHARDS}`,
  })
  .transform(parsePlacement)
  .refine(({ map }) => map === undefined || map.length === SLOTS, { path: ["map"], error: `must have ${SLOTS} bytes` })
  .refine(({ clusterMap }) => clusterMap === undefined || clusterMap.length === NAME_HASHES, {
    path: ["clusterMap"],
    error: `must have ${NAME_HASHES} bytes`,
  })
  .refine(({ active, map, clusterMap }) => [map, clusterMap].every((each) => namesOnly(each, active)), {
    path: ["map"],
    error: "must name active shards only",
  })
  .refine(({ active, away }) => [...away.keys()].every((shard) => active.includes(shard)), {
    path: ["away"],
    error: "must name active shards only",
  })
  .refine(({ active, waiting }) => [...waiting.keys()].every((shard) => !active.includes(shard)), {
    path: ["waiting"],
    error: "must name no active shards",
  });

function hasShardKeys(record: Readonly<Record<string, unknown>> | undefined): boolean {
  return Object.keys(record ?? {}).every((key) => /^[1-9][0-9]?$/.test(key) && Number(key) <= MAX_NORMAL_SHARDS);
}

function namesOnly(map: SlotMap | undefined, active: readonly number[]): boolean {
  return map === undefined || map.every((shard) => active.includes(shard));
}

function parsePlacement(stored: z.output<typeof placementSchema>): Placement {
  const { joinsFrom, unevenSince, canaryNamespace } = stored;
  const { start, shards, active = [], away, noneReadySince, waiting, losses, moves = [] } = stored;
  return {
    start,
    shards,
    active,
    away: timesOf(away),
    noneReadySinceMs: timeOf(noneReadySince),
    waiting: timesOf(waiting),
    losses: new Map(
      Object.entries(losses ?? {}).map(([shard, { times, last }]) => [Number(shard), { times, lastMs: Date.parse(last) }]),
    ),
    joinsFromMs: timeOf(joinsFrom),
    moves: moves.map(({ at, namespaces }) => ({ atMs: Date.parse(at), namespaces })),
    unevenSinceMs: timeOf(unevenSince),
    canaryNamespace,
    map: parseMap(stored.map),
    clusterMap: parseMap(stored.clusterMap),
  };
}

function timeOf(time: string | undefined): number | undefined {
  return time === undefined ? undefined : Date.parse(time);
}

function timesOf(times: Readonly<Record<string, string>> = {}): Map<number, number> {
  return new Map(Object.entries(times).map(([shard, time]) => [Number(shard), Date.parse(time)]));
}

function parseMap(text: string | undefined): SlotMap | undefined {
  return text === undefined ? undefined : Uint8Array.from(Buffer.from(text, "base64"));
}

export function formatPlacement(placement: Placement): StoredPlacement {
  const { start, shards, active, away, waiting, losses, moves, canaryNamespace } = placement;
  return {
    start,
    shards,
    active,
    away: away.size === 0 ? undefined : byShard(away, timeText),
    noneReadySince: optionalTimeText(placement.noneReadySinceMs),
    waiting: waiting.size === 0 ? undefined : byShard(waiting, timeText),
    losses: losses.size === 0 ? undefined : byShard(losses, ({ times, lastMs }) => ({ times, last: timeText(lastMs) })),
    moves: moves.length === 0 ? undefined : moves.map(({ atMs, namespaces }) => ({ at: timeText(atMs), namespaces })),
    joinsFrom: optionalTimeText(placement.joinsFromMs),
    unevenSince: optionalTimeText(placement.unevenSinceMs),
    canaryNamespace,
    map: mapText(placement.map),
    clusterMap: mapText(placement.clusterMap),
  };
}

function byShard<V, T>(map: ReadonlyMap<number, V>, toStored: (value: V) => T): Record<string, T> {
  return Object.fromEntries([...map].sort(([a], [b]) => a - b).map(([shard, value]) => [shard, toStored(value)]));
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}

function optionalTimeText(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : timeText(ms);
}

function mapText(map: SlotMap | undefined): string | undefined {
  return map && Buffer.from(map).toString("base64");
}

/** Never throws. */
export function readPlacement(stored: unknown): ValidationResult<Placement> {
  return validate(schema, stored);
}

interface PlacedRoot {
  readonly status?: { readonly placement?: unknown } | undefined;
}

/** The parts of a root's placement on which its route table depends, as text. The times are no such part. */
export function placementInputs(root: PlacedRoot): string | undefined {
  const placement = storedPlacement(root);
  if (placement === undefined) return undefined;
  const { start, shards, active, losses, canaryNamespace, map, clusterMap } = placement;
  const lost = [...losses.keys()].sort((a, b) => a - b);
  return JSON.stringify([start, shards, active, lost, canaryNamespace, mapText(map), mapText(clusterMap)]);
}

/** The placement of a root; undefined if it has none, or none that can be read. @param onProblems called in the second case */
export function storedPlacement(
  { status }: PlacedRoot,
  onProblems: (problems: readonly Problem[]) => void = () => {},
): Placement | undefined {
  if (status?.placement === undefined) return undefined;
  const read = readPlacement(status.placement);
  if (!read.ok) onProblems(read.problems);
  return read.ok ? read.value : undefined;
}
