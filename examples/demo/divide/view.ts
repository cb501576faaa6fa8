// Formats the tables of the act as lines of text. Pure. Golden tests check it.
import { DEFAULT_SUBSET } from "../../../src/mesh/ownership/table.ts";
import { subsetDisplayName } from "../../../src/mesh/ownership/words.ts";
import { type Cell, countedLines, type Paint, type Style, tableLines, verdictLines } from "../table.ts";

/** One served namespace with its Foos. */
export interface NamespaceRow {
  readonly namespace: string;
  readonly subset: string;
  /** True while the namespace moves to `subset`. */
  readonly moving: boolean;
  /** The pods that last reconciled its Foos; empty if there are none. */
  readonly reconciledBy: readonly string[];
  /** How often its Foos were reconciled. */
  readonly count: number;
}

export interface LockRow {
  readonly lock: string;
  /** "" if there is none. */
  readonly leader: string;
}

/** The status of the VirtualApp. */
export interface AppRow {
  readonly name: string;
  /** Status of its condition Ready: True, False or Unknown. */
  readonly ready: string;
  /** Every proxy enforces the newest route, and no namespace moves. */
  readonly converged: boolean;
  /** The message of its condition Converged. */
  readonly message: string;
}

export interface Facts {
  readonly app: AppRow;
  readonly namespaces: readonly NamespaceRow[];
  readonly locks: readonly LockRow[];
}

/** The tables of namespaces, locks and the VirtualApp. No line is wider than `width` after the indentation. */
export function factLines({ app, namespaces, locks }: Facts, paint: Paint, width: number): string[] {
  return [
    ...tableLines(NAMESPACE_HEAD, namespaces.map(namespaceCells), paint, width),
    "",
    ...tableLines(LOCK_HEAD, locks.map(lockCells), paint, width),
    "",
    ...tableLines(APP_HEAD, [appCells(app)], paint, width),
  ];
}

/** Writes by subset and namespace, from the audit log. */
export interface Tally {
  readonly writes: number;
  /** Writes of the subsets' own locks; not included in `writes`. */
  readonly lockWrites: number;
  readonly bySubset: readonly {
    readonly subset: string;
    readonly namespaces: readonly { readonly name: string; readonly writes: number }[];
  }[];
  readonly outside: readonly string[];
}

export function summaryLines({ writes, lockWrites, bySubset, outside }: Tally, paint: Paint, width: number): string[] {
  const rows = bySubset.map(({ subset, namespaces }) => [
    { text: subsetDisplayName(subset), ...styleOf(subset) },
    { text: namespaces.map(({ name, writes }) => `${name} (${writes})`).join(", ") },
  ]);
  return [
    ...countedLines({ writes, lockWrites }, width),
    ...tableLines(["SUBSET", "WROTE IN"], rows, paint, Number.POSITIVE_INFINITY),
    ...verdictLines("writes outside of the writer's namespaces", outside, paint),
  ];
}

const NAMESPACE_HEAD = ["NAMESPACE", "OWNER SUBSET", "RECONCILED BY", "COUNT"];
const LOCK_HEAD = ["LOCK", "LEADER"];
const APP_HEAD = ["VIRTUALAPP", "READY", "MESSAGE"];

function namespaceCells({ namespace, subset, moving, reconciledBy, count }: NamespaceRow): Cell[] {
  const owner = moving ? `${subsetDisplayName(subset)} (moving)` : subsetDisplayName(subset);
  return [
    { text: namespace },
    { text: owner, ...(moving ? { style: "yellow" } : styleOf(subset)) },
    { text: reconciledBy.length === 0 ? "-" : reconciledBy.join(", ") },
    { text: String(count) },
  ];
}

function lockCells({ lock, leader }: LockRow): Cell[] {
  return [{ text: lock }, { text: leader === "" ? "-" : leader }];
}

function appCells({ name, ready, converged, message }: AppRow): Cell[] {
  return [{ text: name }, { text: ready }, { text: message, ...(converged ? {} : { style: "yellow" }) }];
}

function styleOf(subset: string): { readonly style?: Style } {
  return subset === DEFAULT_SUBSET ? {} : { style: "cyan" };
}
