// Formats tables, steps and sentences as lines of text. Pure. Golden tests check it.

export type Style = "bold" | "dim" | "cyan" | "yellow" | "green" | "red";

/** Colours a text, or returns it unchanged. */
export type Paint = (style: Style, text: string) => string;

export interface Cell {
  readonly text: string;
  readonly style?: Style;
}

export const INDENT = "     ";
export const GAP = "  ";

/** A table with a head. Only the last column is cut, so that no line is wider than `width` after the indentation. */
export function tableLines(head: readonly string[], rows: readonly (readonly Cell[])[], paint: Paint, width: number): string[] {
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

/** What the writes of a summary are, before their table. */
export function countedLines({ writes, lockWrites }: { readonly writes: number; readonly lockWrites: number }, width: number) {
  const counted =
    `Counted in the API server's audit log: every create, update, patch and delete that succeeded with a token of ` +
    `the operator's pods, ${writes} writes (and ${lockWrites} writes of their own locks).`;
  return ["", ...noteLines(counted, width), ""];
}

/** The last sentence of a summary, and below it each case in which it is not as it should be. */
export function verdictLines(text: string, wrong: readonly string[], paint: Paint): string[] {
  return [
    "",
    INDENT + paint(wrong.length === 0 ? "green" : "red", `${text}: ${wrong.length}`),
    ...wrong.map((line) => `${INDENT}${GAP}${line}`),
  ];
}

function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 3))}...`;
}
