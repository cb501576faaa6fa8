import { beforeEach, describe, expect, it } from "vitest";
import { parseMetrics } from "../../../test/support/proxy-metrics.ts";
import { createRegistry, type Registry } from "../../base/metrics.ts";
import type { ClusterRoute } from "../../mesh/ownership/clusters.ts";
import { createEgressMetrics, type EgressMetrics } from "./egress-metrics.ts";

let registry: Registry;
let routes: readonly ClusterRoute[] | undefined;
let metrics: EgressMetrics;

const route = (name: string): ClusterRoute => ({ name, servers: [`${name}:443`], drainMs: 1, owner: "" });
const seriesOf = async (name: string) =>
  (await registry.metrics()).split("\n").filter((line) => line.startsWith(`ctrlmesh_proxy_egress_${name}{`));

beforeEach(() => {
  registry = createRegistry("proxy", "test");
  routes = [route("eu-1"), route("us-1")];
  metrics = createEgressMetrics(registry, () => routes);
});

describe("the metrics of requests to other servers", () => {
  it("count each cluster of the routes, and all other servers together", async () => {
    metrics.decided("allowed", "eu-1");
    metrics.decided("not-owned", "us-1");
    metrics.decided("allowed", "");
    metrics.decided("allowed", "a-cluster-of-nobody");
    const { sum } = parseMetrics(await registry.metrics());
    const total = (labels: Record<string, string>) => sum("ctrlmesh_proxy_egress_total", labels);
    expect([total({ cluster: "eu-1" }), total({ cluster: "us-1", result: "not-owned" })]).toEqual([1, 1]);
    expect([total({ cluster: "" }), total({})]).toEqual([2, 4]);
  });

  it("show what is open now, and 0 from the beginning", async () => {
    expect(await seriesOf("open")).toEqual(['ctrlmesh_proxy_egress_open{cluster=""} 0']);
    metrics.open(1, "eu-1");
    metrics.open(1, "");
    expect(await seriesOf("open")).toEqual([
      'ctrlmesh_proxy_egress_open{cluster=""} 1',
      'ctrlmesh_proxy_egress_open{cluster="eu-1"} 1',
    ]);
    routes = undefined;
    expect(await seriesOf("open")).toEqual(['ctrlmesh_proxy_egress_open{cluster=""} 2']);
    metrics.open(-1, "eu-1");
    metrics.open(-1, "");
    expect(await seriesOf("open")).toEqual(['ctrlmesh_proxy_egress_open{cluster=""} 0']);
  });

  it("have no series of a cluster that is gone", async () => {
    metrics.decided("allowed", "eu-1");
    metrics.decided("allowed", "");
    routes = [route("us-1")];
    expect(await seriesOf("total")).toEqual(['ctrlmesh_proxy_egress_total{cluster="",result="allowed"} 1']);
  });

  it("do not grow while MeshClusters come and go, also if nobody scrapes", async () => {
    for (let at = 0; at < 5_000; at++) {
      routes = [route(`c-${at}`)];
      metrics.decided("allowed", `c-${at}`);
      metrics.open(1, `c-${at}`);
      metrics.open(-1, `c-${at}`);
    }
    routes = [route("c-4999"), route("c-0")];
    expect(await seriesOf("total")).toEqual(['ctrlmesh_proxy_egress_total{cluster="c-4999",result="allowed"} 1']);
    expect(await seriesOf("open")).toEqual(['ctrlmesh_proxy_egress_open{cluster=""} 0']);
  });
});
