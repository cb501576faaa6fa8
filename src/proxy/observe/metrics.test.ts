import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createRegistry } from "../../base/metrics.ts";
import { parseRequestInfo } from "../../kube/request-info.ts";
import { LayerTiming } from "../http/handler.ts";
import { createProxyMetrics } from "./metrics.ts";

function setup() {
  const registry = createRegistry("proxy", "test");
  const metrics = createProxyMetrics(registry);
  metrics.stop();
  return { registry, metrics };
}

it("counts decisions by reason", async () => {
  const { registry, metrics } = setup();
  const info = parseRequestInfo("PUT", "/api/v1/namespaces/a/pods/b");
  for (let times = 0; times < 3; times++)
    metrics.replied({ info, decision: "refused", reason: "other-subset", lock: false }, 403, 0);
  metrics.replied({ info, decision: "forwarded", lock: false }, 200, 0);
  const text = await registry.getSingleMetricAsString("ctrlmesh_proxy_decisions_total");
  expect(text).toContain('{decision="refused",verb="update",reason="other-subset"} 3');
  expect(text).toContain('{decision="forwarded",verb="update",reason=""} 1');
});

it("counts open streams by kind", async () => {
  const { registry, metrics } = setup();
  metrics.streamOpened("watch");
  metrics.streamOpened("watch");
  metrics.streamOpened("tunnel");
  metrics.streamClosed("tunnel");
  const text = await registry.metrics();
  expect(text).toContain('ctrlmesh_proxy_open_streams{kind="watch"} 2');
  expect(text).toContain('ctrlmesh_proxy_open_streams{kind="tunnel"} 0');
  expect(text).toContain("ctrlmesh_proxy_active_watches 2");
});

it("shows the time of each layer of a measured call", async () => {
  const { registry, metrics } = setup();
  const clock = createFakeClock();
  const timing = new LayerTiming(clock, ["request-info", "isolate", "upstream"]);
  await clock.advance(2);
  timing.enter(2);
  await clock.advance(30);
  timing.enter(0);
  metrics.timed(timing);
  const text = await registry.getSingleMetricAsString("ctrlmesh_proxy_layer_seconds");
  expect(text).toContain('ctrlmesh_proxy_layer_seconds_sum{layer="request-info"} 0.002');
  expect(text).toContain('ctrlmesh_proxy_layer_seconds_sum{layer="upstream"} 0.03');
  expect(text).toContain('ctrlmesh_proxy_layer_seconds_count{layer="isolate"} 1');
});
