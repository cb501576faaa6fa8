// The report of the bench: rows with a direct figure, a proxied figure, their ratio and a target, and the resources that the proxy's
// process used. Pure.

export interface Row {
  readonly section: string;
  readonly name: string;
  readonly unit: "ms" | "/s" | "MB";
  readonly direct: number;
  readonly proxied: number;
  /** The target of the row, if it has one. */
  readonly target?: Target;
}

/** Bounds of a figure. `of` is the figure: "ratio" is proxied / direct, and "added" is proxied - direct. */
export interface Target {
  readonly of: "ratio" | "added";
  readonly atMost?: number;
  readonly atLeast?: number;
}

/** The resources that one proxy's process used. */
export interface Usage {
  readonly after: string;
  readonly rssMb: number;
  readonly peakMb: number;
  /** Seconds of CPU time since the previous row. */
  readonly cpuSeconds: number;
  readonly wallSeconds: number;
}

export interface Fact {
  readonly name: string;
  readonly value: string;
}

export interface Report {
  readonly rows: readonly Row[];
  readonly usage: readonly Usage[];
  readonly facts: readonly Fact[];
}

/** The order of the two sides. The order alternates by round, since the second side benefits from warm caches. */
export function inTurn(round: number): readonly ("direct" | "proxied")[] {
  return round % 2 === 0 ? ["direct", "proxied"] : ["proxied", "direct"];
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** The value below which a share `q` of all values lies. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN;
}

/** True if the row meets its target; undefined if the row has no target. */
export function isMet({ direct, proxied, target }: Row): boolean | undefined {
  if (target === undefined) return undefined;
  const value = target.of === "ratio" ? proxied / direct : proxied - direct;
  return value <= (target.atMost ?? Number.POSITIVE_INFINITY) && value >= (target.atLeast ?? Number.NEGATIVE_INFINITY);
}

export function renderReport({ rows, usage, facts }: Report): string {
  const cells = rows.map((row) => [
    `${row.section}: ${row.name}`,
    figure(row.direct),
    figure(row.proxied),
    row.unit,
    row.direct === 0 ? "" : `${(row.proxied / row.direct).toFixed(2)}x`,
    row.unit === "ms" ? (row.proxied - row.direct).toFixed(3) : "",
    markText(row),
  ]);
  const used = usage.map(({ after, rssMb, peakMb, cpuSeconds, wallSeconds }) => [
    after,
    `${rssMb}`,
    `${peakMb}`,
    cpuSeconds.toFixed(1),
    wallSeconds.toFixed(1),
  ]);
  return [
    ...columns([["WORK (medians)", "DIRECT", "PROXY", "", "RATIO", "ADDED ms", "TARGET"], ...cells], true),
    "",
    ...columns([["PROXY PROCESS, after", "RSS MB", "PEAK MB", "CPU s", "of s"], ...used]),
    "",
    ...facts.map(({ name, value }) => `${name}: ${value}`),
  ].join("\n");
}

export function figure(value: number): string {
  return value.toFixed(value < 100 ? 3 : 0);
}

function markText(row: Row): string {
  const { target } = row;
  if (target === undefined) return "";
  const bound = target.atMost === undefined ? `>= ${target.atLeast}` : `<= ${target.atMost}`;
  return `${target.of} ${bound}: ${isMet(row) ? "met" : "MISSED"}`;
}

/** Aligned lines: the first column to the left, the others to the right. @param isLastText aligns the last one to the left */
export function columns(rows: readonly (readonly string[])[], isLastText = false): string[] {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  const last = widths.length - 1;
  return rows.map((row) =>
    row
      .map((cell, column) =>
        column === 0 || (column === last && isLastText) ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join("  ")
      .trimEnd(),
  );
}
