// A list as a table for people, and as one document for programs.
import { columns, type Output } from "./output.ts";

/** By the head of the column. Undefined is shown as "-". */
export type Columns<T> = Readonly<Record<string, (item: T) => string | number | undefined>>;

interface Table<T> {
  /** Of the document, for example "EventList". */
  readonly kind: string;
  readonly items: readonly T[];
  readonly columns: Columns<T>;
  /** Said instead of an empty table. */
  readonly ifNone: string;
  /** Further fields of the document. */
  readonly fields?: object;
  /** Lines above the table. */
  readonly title?: readonly string[];
  /** Lines below it. */
  readonly notes?: readonly string[];
}

export function printTable<T>(
  output: Output,
  { kind, items, columns: cells, ifNone, fields = {}, title = [], notes = [] }: Table<T>,
): void {
  const rows = items.map((item) => Object.values(cells).map((cell) => String(cell(item) ?? "-")));
  const lines = columns([Object.keys(cells), ...rows]).map((line) => line.trimEnd());
  output.data(kind, { ...fields, items }, items.length === 0 ? [] : [...title, ...lines, ...notes]);
  if (items.length === 0) output.hint(ifNone);
}
