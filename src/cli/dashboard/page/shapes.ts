// The shapes of cells. Each state has a shape of its own, so that nothing depends on colour.
import type { Cell } from "../model/bands.ts";

export type CellState = Cell["state"];

/** The distance of two cells in CSS pixels. */
export const PITCH = 14;

export const STATES: readonly CellState[] = ["owned", "frozen", "arriving", "leaving", "fenced", "unowned"];

/** Of one cell, from its upper left corner. Owned: a square. Frozen: a cross. Arriving: a diamond. Leaving: a triangle. Fenced: a bar. Nobody's: a small square. */
export const SHAPES: Readonly<Record<CellState, string>> = {
  owned: "m2 2h10v10h-10z",
  frozen: "m2 4l2-2l3 3l3-3l2 2l-3 3l3 3l-2 2l-3-3l-3 3l-2-2l3-3z",
  arriving: "m7 0l7 7l-7 7l-7-7z",
  leaving: "m7 1l7 12h-14z",
  fenced: "m0 5h14v4h-14z",
  unowned: "m5 5h4v4h-4z",
};

/** The same in a text. */
export const SIGNS: Readonly<Record<CellState, string>> = {
  owned: "",
  frozen: "✕",
  arriving: "◆",
  leaving: "▲",
  fenced: "▬",
  unowned: "▪",
};

/** One path for all cells of a state. */
export function pathOf(cells: readonly Cell[], columns: number, state: CellState): string {
  const shape = SHAPES[state];
  let path = "";
  for (const [at, cell] of cells.entries())
    if (cell.state === state) path += `M${(at % columns) * PITCH} ${Math.floor(at / columns) * PITCH}${shape}`;
  return path;
}
