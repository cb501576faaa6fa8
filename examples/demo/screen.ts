// Where the lines go. On a terminal the newest table is redrawn in place below the story; elsewhere lines are only appended,
// and a table is written once, when it is settled. Colour is for terminals without NO_COLOR.
import { styleText } from "node:util";
import { type Facts, factLines, type Paint } from "./view.ts";

export interface Screen {
  readonly paint: Paint;
  readonly isTerminal: boolean;
  /** Columns for a sentence. */
  readonly width: number;
  /** Appends lines. */
  say(lines: readonly string[]): void;
  /** The state of the world now. */
  show(facts: Facts): void;
  /** Leaves the table in the story. */
  settle(): void;
}

export interface ScreenOptions {
  readonly out: { readonly isTTY?: boolean; readonly columns?: number; write(text: string): unknown };
  readonly env: NodeJS.ProcessEnv;
}

const MAX_WIDTH = 110;
/** What stands before every line, and a little behind it. */
const MARGIN = 6;

export function createScreen({ out, env }: ScreenOptions): Screen {
  const isTerminal = out.isTTY === true && env.TERM !== "dumb";
  const isColoured = isTerminal && !env.NO_COLOR;
  const paint: Paint = (style, text) => (isColoured ? styleText(style, text, { validateStream: false }) : text);
  const width = Math.min(MAX_WIDTH, out.columns ?? MAX_WIDTH) - MARGIN;
  let facts: Facts | undefined;
  let drawn: readonly string[] = [];

  const write = (lines: readonly string[]) => out.write(lines.map((line) => `${line}\n`).join(""));
  const erase = () => {
    // Up to the first line of the table, then clear to the end of the screen.
    if (drawn.length > 0) out.write(`\x1b[${drawn.length}A\x1b[J`);
    drawn = [];
  };
  const draw = () => {
    if (facts === undefined) return;
    drawn = ["", ...factLines(facts, paint, width)];
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
      facts = next;
      if (!isTerminal) return;
      const lines = ["", ...factLines(next, paint, width)];
      if (lines.join("\n") === drawn.join("\n")) return;
      erase();
      draw();
    },
    settle() {
      if (!isTerminal) draw();
      drawn = [];
      facts = undefined;
    },
  };
}
