// Formats the demo's tables and sentences as lines of text. Pure. Golden tests check it.
import { subsetDisplayName } from "../../src/route/subset-name.ts";
import { DEFAULT_SUBSET } from "../../src/route/table.ts";

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

export type Style = "bold" | "dim" | "cyan" | "yellow" | "green" | "red";

/** Colours a text, or returns it unchanged. */
export type Paint = (style: Style, text: string) => string;

const INDENT = "     ";
const GAP = "  ";

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

export function stepLines(number: number, total: number, text: string, paint: Paint): string[] {
  return ["", paint("bold", `${number}/${total}  ${text}`)];
}

/** A sentence within a step, wrapped. */
export function noteLines(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else {
      line = line === "" ? word : `${line} ${word}`;
    }
  }
  return [...lines, line].map((text) => INDENT + text);
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
  const counted =
    `Counted in the API server's audit log: every create, update, patch and delete that succeeded with a token of ` +
    `the operator's pods, ${writes} writes (and ${lockWrites} writes of their own locks).`;
  const verdict = `writes outside of the writer's namespaces: ${outside.length}`;
  return [
    "",
    ...noteLines(counted, width),
    "",
    ...tableLines(["SUBSET", "WROTE IN"], rows, paint, Number.POSITIVE_INFINITY),
    "",
    INDENT + paint(outside.length === 0 ? "green" : "red", verdict),
    ...outside.map((line) => `${INDENT}${GAP}${line}`),
  ];
}

interface Cell {
  readonly text: string;
  readonly style?: Style;
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

function tableLines(head: readonly string[], rows: readonly (readonly Cell[])[], paint: Paint, width: number): string[] {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.text.length ?? 0)));
  const format = (cells: readonly Cell[]) => {
    let left = width;
    const texts = cells.map(({ text, style }, column) => {
      const padded = column === cells.length - 1 ? cut(text, left) : text.padEnd(widths[column] ?? 0);
      left -= padded.length + GAP.length;
      return style === undefined ? padded : paint(style, padded);
    });
    return INDENT + texts.join(GAP);
  };
  return [format(head.map((text) => ({ text, style: "dim" }))), ...rows.map(format)];
}

function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 3))}...`;
}
