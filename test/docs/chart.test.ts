// The chart's alerts and dashboard ask for metrics by name: each must be one that the docs tell of, and the chart's version ours.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";

const ROOT = new URL("../../", import.meta.url);
const read = (path: string) => readFileSync(fileURLToPath(new URL(path, ROOT)), "utf8");
const documented = readdirSync(new URL("docs/", ROOT))
  .filter((name) => name.endsWith(".md"))
  .map((name) => read(`docs/${name}`))
  .join("\n");

describe.each(["charts/ctrlmesh/files/alerts.yaml", "charts/ctrlmesh/files/dashboard.json"])("%s", (path) => {
  const names = read(path).match(/\b(?:ctrlmesh|workqueue|controller_runtime)_\w+/g) ?? [];

  it("asks only for metrics that exist", () => {
    expect(names.length).toBeGreaterThan(5);
    const unknown = [...new Set(names)].filter((name) => {
      const base = name.replace(/_bucket$/, "");
      // The proxy's names stand in a table without their prefix.
      return ![base, `\`${base.replace(/^ctrlmesh_proxy_/, "")}\``].some((each) => documented.includes(each));
    });
    expect(unknown).toEqual([]);
  });
});

it("the dashboard is JSON with unique panels that do not overlap", () => {
  interface Panel {
    readonly id: number;
    readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  }
  const { panels } = JSON.parse(read("charts/ctrlmesh/files/dashboard.json")) as { readonly panels: readonly Panel[] };
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, index) => `${x + (index % w)},${y + Math.floor(index / w)}`),
  );
  expect(new Set(cells).size).toBe(cells.length);
});

it("chart, application and package have one version", () => {
  const { version } = JSON.parse(read("package.json")) as { readonly version: string };
  expect(parse(read("charts/ctrlmesh/Chart.yaml"))).toMatchObject({ version, appVersion: version });
});
