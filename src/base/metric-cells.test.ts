import { describe, expect, it } from "vitest";
import { createCounterCells, createHistogramCells } from "./metric-cells.ts";
import { Counter, createRegistry, Histogram } from "./metrics.ts";

const text = async (fill: (registry: ReturnType<typeof createRegistry>) => void) => {
  const registry = createRegistry("test", "1");
  fill(registry);
  return (await registry.metrics()).split("\n").sort();
};

describe("metric cells", () => {
  it("counters are exported as prom-client's own", async () => {
    const cells = await text((registry) => {
      const cell = createCounterCells({ name: "a_total", help: "h", labelNames: ["x", "y"], registry });
      cell({ x: "1", y: 'q"' }).value += 3;
      cell({ x: "2", y: "" }).value++;
    });
    const own = await text((registry) => {
      const counter = new Counter({ name: "a_total", help: "h", labelNames: ["x", "y"], registers: [registry] });
      counter.inc({ x: "1", y: 'q"' }, 3);
      counter.inc({ x: "2", y: "" });
    });
    expect(cells).toEqual(own);
  });

  it("histograms are exported as prom-client's own, with labels and without", async () => {
    const values = [0.5, 1, 1.5, 7, 100];
    for (const labels of [{}, { verb: "get" }]) {
      const options = { name: "b_seconds", help: "h", labelNames: Object.keys(labels) };
      const cells = await text((registry) => {
        const cell = createHistogramCells<string>({ ...options, registry, buckets: [1, 5, 10] })(labels);
        for (const value of values) cell.observe(value);
      });
      const own = await text((registry) => {
        const histogram = new Histogram({ ...options, buckets: [1, 5, 10], registers: [registry] });
        for (const value of values) histogram.observe(labels, value);
      });
      expect(cells).toEqual(own);
    }
  });

  it("histograms are exported as JSON too", async () => {
    const registry = createRegistry("test", "1");
    createHistogramCells({ name: "b_seconds", help: "h", labelNames: ["verb"], registry, buckets: [1] })({ verb: "get" }).observe(
      2,
    );
    const [metric] = (await registry.getMetricsAsJSON()).filter(({ name }) => name === "b_seconds");
    expect(metric?.values).toContainEqual({ metricName: "b_seconds_bucket", labels: { verb: "get", le: "+Inf" }, value: 1 });
  });

  it("counters do not grow when they are exported", async () => {
    const registry = createRegistry("test", "1");
    createCounterCells({ name: "a_total", help: "h", registry })({}).value = 2;
    await registry.metrics();
    expect(await registry.getSingleMetricAsString("a_total")).toContain("a_total 2");
  });
});
