// The tables of the scale-out bench. Pure.
import { columns } from "../table.ts";
import type { PodCounts } from "./pod.ts";
import type { ScaleOutReport } from "./scale-out.ts";
import type { ScaleOutRun } from "./work.ts";

/** Columns of one operator: the heading and the figure. */
const FIGURES: readonly (readonly [string, (counts: PodCounts) => number])[] = [
  ["REQUESTS", (counts) => counts.requests],
  ["EVENTS", (counts) => counts.events],
  ["KB RECEIVED", (counts) => counts.received / 1000],
  ["KB FROM API SERVER", (counts) => counts.fromServer / 1000],
  ["RECONCILES", (counts) => counts.reconciles],
];

export function renderScaleOut({ runs, throughputs }: ScaleOutReport): string {
  const [first] = throughputs;
  const rates = throughputs.map(({ shards, reconcilesPerSecond, largestShare }) => [
    `${shards}`,
    reconcilesPerSecond.toFixed(1),
    `${(reconcilesPerSecond / (first?.reconcilesPerSecond ?? 1)).toFixed(2)}x`,
    `${(largestShare * shards).toFixed(2)}x`,
  ]);
  return [
    ...columns([["SCALE-OUT, each operator", "", ...FIGURES.map(([heading]) => heading)], ...runs.flatMap(operatorRows)]),
    "",
    ...columns([["SCALE-OUT, all processes", ...COSTS.map(([heading]) => heading)], ...runs.map(costRow)]),
    "",
    ...columns([["THROUGHPUT, shards", "RECONCILES/s", "RATIO", "LARGEST / MEAN"], ...rates]),
  ].join("\n");
}

function operatorRows({ shards, operators }: ScaleOutRun): string[][] {
  const row = (what: string, of: (values: readonly number[]) => number) => [
    shardsText(shards),
    what,
    ...FIGURES.map(([, figure]) => of(operators.map(figure)).toFixed(0)),
  ];
  return shards < 2 ? [row("", mean)] : [row("mean", mean), row("largest", (values) => Math.max(...values))];
}

const COSTS: readonly (readonly [string, (run: ScaleOutRun) => number, number])[] = [
  ["API SERVER CPU s", (run) => run.apiServerCpuSeconds, 1],
  ["MANAGER CPU s", (run) => run.managerCpuSeconds, 1],
  ["MANAGER RSS MB", (run) => run.managerRssMb, 0],
  ["PROXIES CPU s", (run) => sum(run.operators.map((counts) => counts.proxyCpuSeconds)), 1],
  ["PROXY RSS MB, mean", (run) => mean(run.proxyRssMb), 0],
  ["RECONCILES", (run) => sum(run.operators.map((counts) => counts.reconciles)), 0],
];

function costRow(run: ScaleOutRun): string[] {
  return [shardsText(run.shards), ...COSTS.map(([, figure, digits]) => figure(run).toFixed(digits))];
}

/** @param shards 0 without a mesh */
export function shardsText(shards: number): string {
  return shards === 0 ? "no mesh, 1 operator" : `${shards} ${shards === 1 ? "shard" : "shards"}`;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function mean(values: readonly number[]): number {
  return sum(values) / values.length;
}
