// Formats the tables of the act as lines of text. Pure. Golden tests check it.
import { type Cell, countedLines, type Paint, tableLines, verdictLines } from "../table.ts";

export interface ShardRow {
  readonly shard: string;
  /** Ready pods and all pods, for example "1/1". */
  readonly pods: string;
  /** The pod that holds the shard's lock; "" if there is none. */
  readonly leader: string;
  /** How many namespaces it owns, by the status. */
  readonly namespaces: number;
  /** How many Foos its pod reconciled last. */
  readonly reconciled: number;
}

/** The status of the root. */
export interface RootRow {
  readonly name: string;
  /** Status of its condition Ready: True, False or Unknown. */
  readonly ready: string;
  /** Every proxy enforces the newest route, and no namespace moves. */
  readonly converged: boolean;
  /** Fewest and most namespaces of a normal shard; undefined while the status does not say. */
  readonly balance: readonly [smallest: number, largest: number] | undefined;
  /** The message of its condition Converged. */
  readonly message: string;
}

export interface Facts {
  readonly root: RootRow;
  readonly shards: readonly ShardRow[];
  /** The pod that last reconciled the Foo of each namespace. */
  readonly reconciledBy: ReadonlyMap<string, string>;
  /** Foos with a message that no pod has reconciled yet. */
  readonly behind: number;
}

/** The tables of shards and their root. */
export function factLines({ root, shards }: Facts, paint: Paint, width: number): string[] {
  return [
    ...tableLines(SHARD_HEAD, shards.map(shardCells), paint, width),
    "",
    ...tableLines(ROOT_HEAD, [rootCells(root)], paint, width),
  ];
}

/** The writes in the audit log, from one scaling to the next. */
export interface Tally {
  readonly writes: number;
  /** Writes of the shards' own locks; not included in `writes`. */
  readonly lockWrites: number;
  readonly byShard: readonly { readonly shard: string; readonly namespaces: number; readonly writes: number }[];
  readonly scalings: readonly ScalingTally[];
  /** Writes of a shard after another shard had taken its namespace over. */
  readonly late: readonly string[];
  /** Namespaces without a write before or after a scaling. */
  readonly silent: readonly string[];
}

export interface ScalingTally {
  readonly title: string;
  /** Namespaces that another shard writes in afterwards. */
  readonly moved: number;
  /** The fewest that must move, so that no normal shard has more than an even part, rounded up. */
  readonly minimum: number;
}

export function summaryLines({ byShard, scalings, late, ...counts }: Tally, paint: Paint, width: number): string[] {
  const shards = byShard.map(({ shard, namespaces, writes }) => texts(shard, writes, namespaces));
  const moves = scalings.map(({ title, moved, minimum }) => texts(title, moved, minimum));
  return [
    ...countedLines(counts, width),
    ...tableLines(["SHARD", "WRITES", "IN NAMESPACES"], shards, paint, width),
    "",
    ...tableLines(["NORMAL SHARDS", "NAMESPACES MOVED", "MINIMUM"], moves, paint, width),
    ...verdictLines("writes by a shard after another one had taken the namespace over", late, paint),
  ];
}

const SHARD_HEAD = ["SHARD", "PODS", "LEADER", "NAMESPACES", "RECONCILED"];
const ROOT_HEAD = ["SHARDINGCONFIG", "READY", "NAMESPACES OF A NORMAL SHARD", "MESSAGE"];

function shardCells({ shard, pods, leader, namespaces, reconciled }: ShardRow): Cell[] {
  const done = { text: String(reconciled), ...(reconciled === namespaces ? {} : { style: "yellow" as const }) };
  return [...texts(shard, pods, leader === "" ? "-" : leader, namespaces), done];
}

function rootCells({ name, ready, converged, balance, message }: RootRow): Cell[] {
  const range = balance === undefined ? "-" : balance[0] === balance[1] ? `${balance[0]}` : `${balance[0]} to ${balance[1]}`;
  return [...texts(name, ready, range), { text: message, ...(converged ? {} : { style: "yellow" }) }];
}

function texts(...values: readonly (string | number)[]): Cell[] {
  return values.map((value) => ({ text: String(value) }));
}
