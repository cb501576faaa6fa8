// Measuring in turn and showing the result: direct and proxied alternate, so that a noisy machine disturbs both alike.
import { performance } from "node:perf_hooks";

export interface Row {
  readonly name: string;
  readonly directMs: number;
  readonly proxiedMs: number;
  readonly ratio: number;
}

export interface CompareOptions<T> {
  readonly direct: T;
  readonly proxied: T;
  readonly rounds: number;
  /** Runs of each side a round. */
  readonly each: number;
  readonly run: (side: T) => Promise<void>;
}

/** Medians over all runs, after one round to warm up. */
export async function compare<T>(name: string, { direct, proxied, rounds, each, run }: CompareOptions<T>): Promise<Row> {
  const times = { direct: [] as number[], proxied: [] as number[] };
  for (let round = 0; round <= rounds; round++) {
    for (const [side, target] of [
      ["direct", direct],
      ["proxied", proxied],
    ] as const) {
      for (let index = 0; index < each; index++) {
        const start = performance.now();
        await run(target);
        if (round > 0) times[side].push(performance.now() - start);
      }
    }
  }
  const [directMs, proxiedMs] = [median(times.direct), median(times.proxied)];
  return { name, directMs, proxiedMs, ratio: proxiedMs / directMs };
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  return ((sorted[Math.ceil(middle) - 1] ?? 0) + (sorted[Math.floor(middle)] ?? 0)) / 2;
}

export function renderTable(rows: readonly Row[]): string {
  const width = Math.max(...rows.map(({ name }) => name.length));
  const line = (name: string, direct: string, proxied: string, ratio: string, added: string) =>
    `${name.padEnd(width)}  ${direct.padStart(10)}  ${proxied.padStart(10)}  ${ratio.padStart(6)}  ${added.padStart(9)}`;
  return [
    line("WORK (medians)", "DIRECT ms", "PROXY ms", "RATIO", "ADDED ms"),
    ...rows.map(({ name, directMs, proxiedMs, ratio }) =>
      line(name, directMs.toFixed(3), proxiedMs.toFixed(3), `${ratio.toFixed(2)}x`, (proxiedMs - directMs).toFixed(3)),
    ),
  ].join("\n");
}
