// Columns of a Table, and the part of kubectl's JSONPath that additionalPrinterColumns use: dotted fields, ['quoted'] fields,
// [n], [*] and [?(@.field=="value")]. An unreadable path gives no cell and no error, since only people read columns.
import { fieldAt, isObject } from "./object.ts";

export interface Column {
  readonly name: string;
  readonly type: string;
  readonly jsonPath: string;
  readonly format?: string;
  readonly description?: string;
  /** Above 0: only in wide output. */
  readonly priority?: number;
}

type Step =
  | { readonly field: string }
  | { readonly index: number }
  | { readonly all: true }
  | { readonly path: string; readonly equals: string };

const STEP =
  /\.?\[['"]([^'"]+)['"]\]|\.?\[(-?\d+)\]|\.?\[\*\]|\.?\[\?\(@\.([\w.-]+)\s*==\s*['"]([^'"]*)['"]\)\]|\.((?:[^.[\]\\]|\\.)+)/y;

/** All values at a JSONPath. */
export function valuesAt(value: unknown, jsonPath: string): unknown[] {
  const steps = parseSteps(jsonPath);
  return steps === undefined ? [] : steps.reduce<unknown[]>((values, step) => values.flatMap((at) => take(at, step)), [value]);
}

/** The cell of a column: the first value, converted to the column's type, or null. */
export function cellOf(object: unknown, column: Column): unknown {
  const value = valuesAt(object, column.jsonPath)[0];
  if (value === undefined || value === null) return null;
  switch (column.type) {
    case "integer":
    case "number":
      return typeof value === "number" ? value : null;
    case "boolean":
      return typeof value === "boolean" ? value : null;
    default:
      return typeof value === "object" ? JSON.stringify(value) : String(value);
  }
}

function parseSteps(jsonPath: string): Step[] | undefined {
  const steps: Step[] = [];
  const text = jsonPath.startsWith(".") || jsonPath.startsWith("[") ? jsonPath : `.${jsonPath}`;
  STEP.lastIndex = 0;
  while (STEP.lastIndex < text.length) {
    const match = STEP.exec(text);
    if (match === null) return undefined;
    const [, quoted, index, path, equals, plain] = match;
    if (quoted !== undefined) steps.push({ field: quoted });
    else if (index !== undefined) steps.push({ index: Number(index) });
    else if (path !== undefined) steps.push({ path, equals: equals ?? "" });
    else if (plain !== undefined) steps.push({ field: plain.replace(/\\(.)/g, "$1") });
    else steps.push({ all: true });
  }
  return steps;
}

function take(value: unknown, step: Step): unknown[] {
  if ("field" in step) return isObject(value) && Object.hasOwn(value, step.field) ? [value[step.field]] : [];
  if ("all" in step) return Array.isArray(value) ? value : isObject(value) ? Object.values(value) : [];
  if (!Array.isArray(value)) return [];
  if ("index" in step) return value.slice(step.index).slice(0, 1);
  return value.filter((item) => String(fieldAt(item, step.path)) === step.equals);
}
