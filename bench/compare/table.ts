// The table of the comparison: for each row the medians of all rounds, and each proxy's distance from the direct way with the
// smallest and the largest of its rounds. Pure.
import { columns, figure, median } from "../table.ts";
import { type Comparison, type ProxyName, ROWS, type RowName, type Sample } from "./samples.ts";

export function renderComparison({ samples, costs }: Comparison): string {
  const proxies = (["ours", "theirs"] as const).filter((proxy) => costs.some((cost) => cost.proxy === proxy));
  const headings = proxies.map((proxy) => proxy.toUpperCase());
  const rows = (Object.keys(ROWS) as RowName[]).map((row) => {
    const all = samples.filter((sample) => sample.row === row);
    return [
      ROWS[row].name,
      ROWS[row].unit,
      figure(median(all.map(({ direct }) => direct))),
      ...proxies.map((proxy) => figure(median(all.filter((each) => each.proxy === proxy).map(({ proxied }) => proxied)))),
      ...proxies.map((proxy) => distanceText(row, proxy, all)),
    ];
  });
  const cost = (of: "rssMb" | "cpuSeconds", digits: number) =>
    proxies.map((proxy) => median(costs.filter((each) => each.proxy === proxy).map((each) => each[of])).toFixed(digits));
  return [
    ...columns([["WORK", "", "DIRECT", ...headings, ...headings.map((heading) => `${heading} / DIRECT`)], ...rows]),
    "",
    ...columns([
      ["LAST PROCESS OF A ROUND", ...headings],
      ["RSS at its end, MB", ...cost("rssMb", 0)],
      ["CPU, s", ...cost("cpuSeconds", 1)],
    ]),
  ].join("\n");
}

/** "1.33x (1.30 to 1.41)", or what is added in ms. */
function distanceText(row: RowName, proxy: ProxyName, all: readonly Sample[]): string {
  const isRatio = ROWS[row].shows === "ratio";
  const distances = all
    .filter((each) => each.proxy === proxy)
    .map(({ direct, proxied }) => (isRatio ? proxied / direct : proxied - direct));
  const [least, middle, most] = [Math.min(...distances), median(distances), Math.max(...distances)];
  const text = (value: number) => `${!isRatio && value > 0 ? "+" : ""}${value.toFixed(2)}`;
  const range = distances.length > 1 ? ` (${text(least)} to ${text(most)})` : "";
  return `${text(middle)}${isRatio ? "x" : " ms"}${range}`;
}
