// Formats the state of the act: the breaker, and how many ConfigMaps are left. Pure.
import { type Paint, tableLines } from "../table.ts";

export interface Facts {
  /** Undefined before the breaker is applied. */
  readonly breaker: BreakerRow | undefined;
  /** ConfigMaps that the operator must not delete. */
  readonly left: number;
}

export interface BreakerRow {
  readonly name: string;
  /** Statuses of the conditions. */
  readonly synced: string;
  readonly open: string;
  /** Message of the condition Open. */
  readonly message: string;
}

/** No line is wider than `width` after the indentation. */
export function factLines({ breaker, left }: Facts, paint: Paint, width: number): string[] {
  const maps = tableLines(["CONFIGMAPS OF TEAM-A"], [[{ text: String(left) }]], paint, width);
  if (breaker === undefined) return maps;
  const { name, synced, open, message } = breaker;
  const row = [
    { text: name },
    { text: synced },
    { text: open, ...(open === "True" ? { style: "yellow" as const } : {}) },
    { text: message },
  ];
  return [...maps, "", ...tableLines(["CIRCUITBREAKER", "SYNCED", "OPEN", "MESSAGE"], [row], paint, width)];
}
