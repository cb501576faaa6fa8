// The chart's alerts and dashboard use metrics by name: the docs must describe each of them. The chart has the project's version.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { proxyContainer } from "../../src/manager/injection/mesh-containers.ts";
import { planInjection } from "../../src/manager/injection/plan.ts";

const ROOT = new URL("../../", import.meta.url);
const read = (path: string) => readFileSync(fileURLToPath(new URL(path, ROOT)), "utf8");
const documented = readdirSync(new URL("docs/", ROOT), { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".md"))
  .map((name) => read(`docs/${name}`))
  .join("\n");

describe.each(["charts/ctrlmesh/files/alerts.yaml", "charts/ctrlmesh/files/dashboard.json"])("%s", (path) => {
  const names = read(path).match(/\b(?:ctrlmesh|workqueue|controller_runtime)_\w+/g) ?? [];

  it("uses only metrics that exist", () => {
    expect(names.length).toBeGreaterThan(5);
    const unknown = [...new Set(names)].filter((name) => {
      const base = name.replace(/_bucket$/, "");
      // A table has the proxy's names without their prefix.
      return ![base, `\`${base.replace(/^ctrlmesh_proxy_/, "")}\``].some((each) => documented.includes(each));
    });
    expect(unknown).toEqual([]);
  });
});

it("the alerts about certificates contain the limits that the chart shortens, each once", () => {
  const limits = [...read("charts/ctrlmesh/templates/monitoring.yaml").matchAll(/replace "(\d+ \* 3600)"/g)].map(
    ([, limit]) => limit,
  );
  const used = [...read("charts/ctrlmesh/files/alerts.yaml").matchAll(/< (\d+ \* 3600)/g)].map(([, limit]) => limit);
  expect(used).toHaveLength(4);
  expect(used.toSorted()).toEqual(limits.toSorted());
});

const headings = [...read("docs/troubleshooting.md").matchAll(/^### (\w+)$/gm)].map(([, name = ""]) => name);

it("every alert has a heading in docs/troubleshooting.md, and no other heading is one", () => {
  const alerts = [...read("charts/ctrlmesh/files/alerts.yaml").matchAll(/- alert: (\w+)/g)].map(([, name]) => name);
  expect(headings.toSorted()).toEqual(alerts.toSorted());
});

it.each(headings)("the section %s has Impact, Check with commands that a test runs, and Fix", (alert) => {
  const [, section = ""] = read("docs/troubleshooting.md").split(new RegExp(`^### ${alert}$`, "m"));
  const own = section.split(/^### /m)[0] ?? "";
  expect([...own.matchAll(/^\*\*(\w+)\*\*: |^```(\w+)$/gm)].map(([, word, fence]) => word ?? fence)).toEqual([
    "Impact",
    "Check",
    "sh",
    "Fix",
  ]);
});

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly links?: readonly { readonly url: string }[];
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly fieldConfig?: { readonly defaults: { readonly thresholds?: { readonly steps: readonly object[] } } };
}

describe("the dashboard", () => {
  const { panels, templating } = JSON.parse(read("charts/ctrlmesh/files/dashboard.json")) as {
    readonly panels: readonly Panel[];
    readonly templating: { readonly list: readonly { readonly name: string; readonly query: string }[] };
  };
  const shown = panels.filter(({ type }) => type !== "row");

  it("has unique panels that do not overlap", () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, index) => `${x + (index % w)},${y + Math.floor(index / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
  });

  it("describes each panel, and colours each number by thresholds", () => {
    expect(shown.filter(({ description = "" }) => description === "").map(({ title }) => title)).toEqual([]);
    const stats = shown.filter(({ type }) => type === "stat");
    expect(stats.length).toBeGreaterThan(4);
    const steps = stats.map(({ fieldConfig }) => fieldConfig?.defaults.thresholds?.steps.length ?? 0);
    expect(Math.min(...steps)).toBeGreaterThan(1);
  });

  it("leads to the runbook of every alert, on the page that the chart's value names", () => {
    const urls = new Set(shown.flatMap(({ links = [] }) => links.map(({ url }) => url)));
    expect([...urls].toSorted()).toEqual(headings.map((alert) => `\${runbook}#${alert.toLowerCase()}`).toSorted());
    const { monitoring } = parse(read("charts/ctrlmesh/values.yaml")) as {
      readonly monitoring: { readonly prometheusRule: { readonly runbookBaseUrl: string } };
    };
    expect(templating.list.find(({ name }) => name === "runbook")?.query).toBe(monitoring.prometheusRule.runbookBaseUrl);
  });
});

it("chart, application and package have one version", () => {
  const { version } = JSON.parse(read("package.json")) as { readonly version: string };
  expect(parse(read("charts/ctrlmesh/Chart.yaml"))).toMatchObject({ version, appVersion: version });
});

it("the PodMonitor uses a port that the sidecar has", () => {
  const [, name] =
    /- port: ([a-z-]+)\n +path: \/metrics\n +interval: \{\{ \.podMonitor/.exec(
      read("charts/ctrlmesh/templates/monitoring.yaml"),
    ) ?? [];
  const settings = {
    proxyImage: "proxy:1",
    managerAddress: "manager:5447",
    nativeSidecars: true,
    kubernetesService: { ips: ["10.96.0.1"], port: 443 },
  };
  const { ports } = proxyContainer(planInjection({}, settings, { containers: [] }, undefined));
  expect(ports?.map((port) => port.name)).toEqual([name]);
});
