// The table of what broken clusters cost: for each work and load the medians of all rounds, and the median of the ratios of p99 with the
// smallest and the largest. Pure.
import { columns, figure, median } from "../table.ts";
import { type ClusterCosts, type ClusterSample, QUIET } from "./clusters.ts";

export function renderClusters({ samples, cpu, rssMb }: ClusterCosts): string {
  const rows = [...Map.groupBy(samples, ({ work, load }) => `${work}\n${load}`).values()].map((group) => {
    const [{ work, load } = { work: "", load: "" }] = group;
    const of = (key: "p50" | "p99") => figure(median(group.map((each) => each[key])));
    return [work, load, of("p50"), of("p99"), load === QUIET ? "" : ratioText(group, samples)];
  });
  const shares = [...Map.groupBy(cpu, ({ load }) => load)].map(([load, each]) => [
    load,
    `${(median(each.map(({ share }) => share)) * 100).toFixed(0)} %`,
  ]);
  const memory = `RSS of the sidecar before and after each round, MB: ${rssMb.map((each) => each.toFixed(0)).join(", ")}`;
  rows.sort(([a = ""], [b = ""]) => (a < b ? -1 : a > b ? 1 : 0));
  return [
    ...columns([["WORK", "CONNECTIONS", "P50 MS", "P99 MS", "P99 / NONE"], ...rows]),
    "",
    ...columns([["CONNECTIONS", "CPU OF THE SIDECAR"], ...shares]),
    "",
    memory,
  ].join("\n");
}

function ratioText(group: readonly ClusterSample[], all: readonly ClusterSample[]): string {
  const ratios = group.map(({ work, round, p99 }) => {
    const quiet = all.find((each) => each.load === QUIET && each.work === work && each.round === round);
    return p99 / (quiet?.p99 ?? Number.NaN);
  });
  return `${median(ratios).toFixed(2)}x (${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)})`;
}
