// Counts the writes in the audit log, and finds writes of a shard that had lost the namespace. Pure. Invariant: who owns a namespace follows from
// the order of the writes alone, never from the mesh. Until the first scaling one shard writes in a namespace. Between two scalings the
// namespace may go to another shard, and a shard that wrote there earlier may not write again. Called by steps.ts.
import { type AuditEvent, type OperatorInAudit, writesIn } from "../audit.ts";
import type { ScalingTally, Tally } from "./view.ts";

export interface Expectation extends OperatorInAudit {
  /** The canary shard, which is not scaled. */
  readonly canary: string;
  /** In order of time. Each is a patch of the StatefulSet in the log. */
  readonly scalings: readonly { readonly title: string; readonly normalShards: readonly string[] }[];
}

/** The shards that wrote in a namespace between two scalings, in order of time. The first is the last one before the scaling. */
type Writers = readonly [first: string, ...later: string[]];

export function tallyShards(events: readonly AuditEvent[], { canary, scalings, ...operator }: Expectation): Tally {
  let phase = new Map<string, Writers>();
  const phases = [phase];
  const owners = new Map<string, string>();
  const byShard = new Map<string, { writes: number; namespaces: Set<string> }>();
  const late: string[] = [];
  let [writes, lockWrites] = [0, 0];
  for (const write of writesIn(events, operator)) {
    // A pod whose shard is gone stands by, with the operator's lock under its own name.
    const isLock = write.by === "lock" || (write.by === "operator" && write.resource === "leases");
    if (isLock) lockWrites++;
    if (write.by === "other" && write.resource === "statefulsets" && write.verb === "patch") {
      phase = new Map();
      phases.push(phase);
    }
    if (write.by !== "operator" || isLock) continue;
    const { subset: shard, namespace, text } = write;
    const own = byShard.get(shard) ?? { writes: 0, namespaces: new Set() };
    byShard.set(shard, own);
    writes++;
    own.writes++;
    own.namespaces.add(namespace);
    const writers = phase.get(namespace) ?? [owners.get(namespace) ?? shard];
    const isNext = writers.at(-1) !== shard;
    if (isNext && (phases.length === 1 || writers.includes(shard))) late.push(text);
    phase.set(namespace, isNext ? [...writers, shard] : writers);
    owners.set(namespace, shard);
  }
  return {
    writes,
    lockWrites,
    late,
    byShard: [...byShard]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([shard, own]) => ({ shard, writes: own.writes, namespaces: own.namespaces.size })),
    scalings: scalings.map(({ title, normalShards }, index) => ({
      title,
      ...movesOf([...(phases[index + 1]?.values() ?? [])], canary, normalShards),
    })),
    silent: [...owners.keys()].filter((namespace) => !phases.every((each) => each.has(namespace))),
  };
}

/** The namespaces that moved in a scaling, and the fewest that had to move. */
function movesOf(
  namespaces: readonly Writers[],
  canary: string,
  shards: readonly string[],
): Pick<ScalingTally, "moved" | "minimum"> {
  const placed = namespaces.filter(([before]) => before !== canary);
  const part = Math.ceil(placed.length / shards.length);
  const surpluses = [...Map.groupBy(placed, ([before]) => before)].map(([shard, own]) =>
    shards.includes(shard) ? Math.max(0, own.length - part) : own.length,
  );
  return {
    moved: namespaces.filter((writers) => writers[0] !== writers.at(-1)).length,
    minimum: surpluses.reduce((sum, surplus) => sum + surplus, 0),
  };
}
