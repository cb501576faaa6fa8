// What ctrlmesh prints. Invariants: stdout has the data and nothing else, as text or as one JSON document. Progress
// and hints go to stderr. A text from the cluster or a file neither drives the terminal nor makes a line of its own.
import { plainText } from "../../base/plain-text.ts";

export const CLI_VERSION = "cli.ctrlmesh.kruise.io/v1alpha1";

/** No message of a status is longer. */
const MAX_LINE = 16_384;

/** A terminal that may be cleared. */
export interface Screen {
  readonly rows: number;
  readonly columns: number;
}

export interface Streams {
  out(text: string): void;
  err(text: string): void;
  /** Undefined: stdout is no terminal, or one that may not be cleared. */
  screen?(): Screen | undefined;
}

export interface Output {
  readonly isJson: boolean;
  /** Prints the data: the lines, or with `-o json` the object with this kind. */
  data(kind: string, object: object, lines: readonly string[]): void;
  /** Prints a document for programs, also without `-o json`. */
  document(kind: string, object: object): void;
  /** Prints a document in one line, where more of them follow. */
  documentLine(kind: string, object: object): void;
  /** Clears the screen and prints the lines that it has room for. False, and nothing is printed: there is no screen. */
  redraw(lines: readonly string[]): boolean;
  /** Prints a script of this program. */
  script(text: string): void;
  hint(text: string): void;
}

export function createOutput({ out, err, screen }: Streams, isJson: boolean): Output {
  const document = (kind: string, object: object) => out(`${jsonText(kind, object, 2)}\n`);
  return {
    isJson,
    document,
    documentLine: (kind, object) => out(`${jsonText(kind, object, 0)}\n`),
    redraw(lines) {
      const size = screen?.();
      if (size !== undefined) out(`${CLEAR}${fitting(lines.map(oneLine), size).join("\n")}\n`);
      return size !== undefined;
    },
    script: out,
    data(kind, object, lines) {
      if (isJson) document(kind, object);
      else if (lines.length > 0) out(`${lines.map(oneLine).join("\n")}\n`);
    },
    hint: (text) => err(`${oneLine(text)}\n`),
  };
}

/** Cursor to the upper left, then clears the screen (ECMA-48 CUP and ED). */
const CLEAR = "\u001b[H\u001b[2J";

/** The first lines, as many as the screen has room for above the cursor. */
function fitting(lines: readonly string[], { rows, columns: width }: Screen): readonly string[] {
  let height = 0;
  const ends = lines.map((line) => {
    height += Math.max(1, Math.ceil(line.length / width));
    return height;
  });
  if (height < rows) return lines;
  const shown = lines.filter((_, at) => (ends[at] ?? 0) < rows - 1);
  return [...shown, `and ${lines.length - shown.length} more lines`];
}

function jsonText(kind: string, object: object, indent: number): string {
  const head = { apiVersion: CLI_VERSION, kind };
  return escaped(JSON.stringify({ ...head, ...object, ...head }, null, indent));
}

/** JSON leaves some characters as they are that drive a terminal or change the order of its text. */
function escaped(json: string): string {
  return json.replaceAll(/[\u007f-\u009f\u2028\u2029\p{Cf}]/gu, (text) =>
    Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, "0")}`).join(""),
  );
}

export function oneLine(text: string): string {
  return plainText(text, MAX_LINE);
}

/** For example "1 pod", "3 pods". */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** Rows as columns of equal width. The last column is not padded, and may be long; one long cell would widen every row. */
export function columns(texts: readonly (readonly string[])[], indent = ""): string[] {
  const rows = texts.map((row) => row.map((cell, at) => (at === row.length - 1 ? cell : plainText(cell))));
  const widths: number[] = [];
  for (const row of rows) for (const [at, cell] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, cell.length);
  return rows.map(
    (row) => indent + row.map((cell, at) => (at === row.length - 1 ? cell : cell.padEnd(widths[at] ?? 0))).join("  "),
  );
}

/** The words as one command line of a POSIX shell. */
export function shellLine(words: readonly string[]): string {
  return words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");
}
