// What each flow took, as a table for the reader of a run. The rows are in a file of the run's folder, so that they also show after a failure.
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

export interface Row {
  readonly flow: string;
  readonly seconds: number;
  /** The longest time between two writes in one of the tenants' namespaces, while their objects change all the time. */
  readonly pauseSeconds?: number;
  /** Containers that were started again in their pods. */
  readonly restarts?: number;
  /** Pods that are new. */
  readonly newPods?: number;
}

const HEADS = ["flow", "seconds", "longest pause of writes, s", "restarted containers", "new pods"];

export function addRow(folder: string, row: Row): void {
  appendFileSync(join(folder, "rows"), `${JSON.stringify(row)}\n`);
}

export function readRows(folder: string): Row[] {
  const file = join(folder, "rows");
  if (!existsSync(file)) return [];
  return readFileSync(file, "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Row);
}

/** Adds a line below the table. */
export function addNote(folder: string, note: string): void {
  appendFileSync(join(folder, "notes"), `${note}\n`);
}

export function readNotes(folder: string): string {
  const file = join(folder, "notes");
  return existsSync(file) ? readFileSync(file, "utf8") : "";
}

/** As Markdown. */
export function tableOf(rows: readonly Row[]): string {
  const cells = rows.map(({ flow, seconds, pauseSeconds, restarts, newPods }) => [
    flow,
    seconds.toFixed(1),
    pauseSeconds?.toFixed(2) ?? "",
    restarts?.toString() ?? "",
    newPods?.toString() ?? "",
  ]);
  const widths = HEADS.map((head, column) => Math.max(head.length, ...cells.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]) => `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`;
  return [line(HEADS), line(widths.map((width) => "-".repeat(width))), ...cells.map(line)].join("\n");
}
