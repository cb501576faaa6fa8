// Writes the output. On a terminal the newest table is redrawn below the story; elsewhere lines are only appended, and a table is written once,
// when it is final. Colours are only for terminals without NO_COLOR.
import { styleText } from "node:util";
import type { Paint } from "./table.ts";

export interface Screen {
  readonly paint: Paint;
  readonly isTerminal: boolean;
  /** The width of a sentence, in columns. */
  readonly width: number;
  /** Appends lines. */
  say(lines: readonly string[]): void;
  /** Draws the tables of the present state. */
  show(table: readonly string[]): void;
  /** Keeps the table in the output. */
  keepTable(): void;
}

export interface ScreenOptions {
  readonly out: { readonly isTTY?: boolean; readonly columns?: number; write(text: string): unknown };
  readonly env: NodeJS.ProcessEnv;
}

const MAX_WIDTH = 110;
/** The indentation of a line, and a margin behind it. */
const MARGIN = 6;

export function createScreen({ out, env }: ScreenOptions): Screen {
  const isTerminal = out.isTTY === true && env.TERM !== "dumb";
  const isColoured = isTerminal && !env.NO_COLOR;
  const paint: Paint = (style, text) => (isColoured ? styleText(style, text, { validateStream: false }) : text);
  const width = Math.min(MAX_WIDTH, out.columns ?? MAX_WIDTH) - MARGIN;
  let table: readonly string[] | undefined;
  let drawn: readonly string[] = [];

  const write = (lines: readonly string[]) => out.write(lines.map((line) => `${line}\n`).join(""));
  const erase = () => {
    // Moves to the first line of the table, and clears to the end of the screen.
    if (drawn.length > 0) out.write(`\x1b[${drawn.length}A\x1b[J`);
    drawn = [];
  };
  const draw = () => {
    if (table === undefined) return;
    drawn = ["", ...table];
    write(drawn);
  };

  return {
    paint,
    isTerminal,
    width,
    say(lines) {
      erase();
      write(lines);
      if (isTerminal) draw();
    },
    show(next) {
      table = next;
      if (!isTerminal || ["", ...next].join("\n") === drawn.join("\n")) return;
      erase();
      draw();
    },
    keepTable() {
      if (!isTerminal) draw();
      drawn = [];
      table = undefined;
    },
  };
}
