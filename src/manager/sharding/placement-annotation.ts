// The placement as JSON in an annotation of the root. Pure. Invariants: equal placements give equal texts; a
// placement that was read gives every namespace to an active shard; a text that cannot be read counts as
// absent.
import { z } from "zod";
import { MAX_INT32 } from "../../api/fields.ts";
import { type Problem, type ValidationResult, validate } from "../../api/problems.ts";
import { MAX_NORMAL_SHARDS, PLACEMENT } from "../../api/sharding-keys.ts";
import { parseJson } from "../../base/json.ts";
import type { KubeObject } from "../../kube/types.ts";
import { SLOTS } from "./balanced-map.ts";
import type { Placement } from "./placement.ts";

/** In characters. A placement of 64 shards that are all away and were all lost before has less than 8,000. */
const MAX_LENGTH = 16_384;
const MAX_LOSSES = 1_000_000;

const numberSchema = z.int().min(1).max(MAX_NORMAL_SHARDS);
const keySchema = z.string().regex(/^[1-9][0-9]?$/);
const timeSchema = z.iso.datetime({ error: "must be a time such as 2026-01-31T12:00:00Z" });

const schema = z
  .object({
    start: z.int().min(0).max(MAX_INT32),
    shards: numberSchema,
    active: z
      .array(numberSchema)
      .min(1)
      .max(MAX_NORMAL_SHARDS)
      .refine((list) => list.every((shard, at) => at === 0 || shard > (list[at - 1] ?? 0)), { error: "must be ascending" }),
    away: z.record(keySchema, timeSchema),
    noneReadySince: timeSchema.optional(),
    waiting: z.record(keySchema, timeSchema).default({}),
    losses: z.record(keySchema, z.object({ times: z.int().min(1).max(MAX_LOSSES), last: timeSchema })).default({}),
    map: z.base64().optional(),
  })
  .transform(
    ({ away, noneReadySince, waiting, losses, map, ...same }): Placement => ({
      ...same,
      away: timesOf(away),
      noneReadySinceMs: noneReadySince === undefined ? undefined : Date.parse(noneReadySince),
      waiting: timesOf(waiting),
      losses: new Map(
        Object.entries(losses).map(([shard, { times, last }]) => [Number(shard), { times, lastMs: Date.parse(last) }]),
      ),
      map: map === undefined ? undefined : Uint8Array.from(Buffer.from(map, "base64")),
    }),
  )
  .refine(({ map }) => map === undefined || map.length === SLOTS, { path: ["map"], error: `must have ${SLOTS} bytes` })
  .refine(({ active, map }) => map === undefined || map.every((shard) => active.includes(shard)), {
    path: ["map"],
    error: "must name active shards only",
  })
  .refine(({ active, away }) => [...away.keys()].every((shard) => active.includes(shard)), {
    path: ["away"],
    error: "must name active shards only",
  });

function timesOf(record: Readonly<Record<string, string>>): Map<number, number> {
  return new Map(Object.entries(record).map(([shard, since]) => [Number(shard), Date.parse(since)]));
}

export function formatPlacement({ start, shards, active, away, noneReadySinceMs, waiting, losses, map }: Placement): string {
  return JSON.stringify({
    start,
    shards,
    active,
    away: byShard(away, timeText),
    noneReadySince: noneReadySinceMs === undefined ? undefined : timeText(noneReadySinceMs),
    waiting: waiting.size === 0 ? undefined : byShard(waiting, timeText),
    losses: losses.size === 0 ? undefined : byShard(losses, ({ times, lastMs }) => ({ times, last: timeText(lastMs) })),
    map: map && Buffer.from(map).toString("base64"),
  });
}

function byShard<T>(map: ReadonlyMap<number, T>, textOf: (value: T) => unknown) {
  return Object.fromEntries([...map].sort(([a], [b]) => a - b).map(([shard, value]) => [shard, textOf(value)]));
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}

/** Never throws. */
export function parsePlacement(text: string): ValidationResult<Placement> {
  if (text.length > MAX_LENGTH) return refused(`has ${text.length} characters; at most ${MAX_LENGTH} are allowed`);
  try {
    return validate(schema, parseJson(text));
  } catch {
    return refused("is not JSON");
  }
}

function refused(message: string): ValidationResult<Placement> {
  return { ok: false, problems: [{ path: "", message }] };
}

/** The part of a root's placement on which its table depends, as text: without the times. */
export function placementInputs(root: Pick<KubeObject, "metadata">): string | undefined {
  const placement = storedPlacement(root);
  if (placement === undefined) return undefined;
  const losses = new Map([...placement.losses.keys()].map((shard) => [shard, { times: 1, lastMs: 0 }]));
  return formatPlacement({ ...placement, away: new Map(), noneReadySinceMs: undefined, waiting: new Map(), losses });
}

/** The placement of a root; undefined if it has none. @param onProblems called if it cannot be read */
export function storedPlacement(
  { metadata: { annotations } }: Pick<KubeObject, "metadata">,
  onProblems: (problems: readonly Problem[]) => void = () => {},
): Placement | undefined {
  const text = annotations?.[PLACEMENT];
  const read = text === undefined ? undefined : parsePlacement(text);
  if (read?.ok === false) onProblems(read.problems);
  return read?.ok ? read.value : undefined;
}
