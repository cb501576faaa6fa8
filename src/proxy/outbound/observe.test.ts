import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { silentLogger } from "../../base/log.ts";
import { createRegistry } from "../../base/metrics.ts";
import { parseRequestInfo } from "../../kube/request-info.ts";
import { StatusError } from "../../kube/status.ts";
import type { RawCall, RawHandler } from "../call/call.ts";
import { countedSource } from "../http/body-sources.ts";
import type { ByteSink, ByteSource } from "../http/byte-stream.ts";
import type { Reply } from "../http/handler.ts";
import { createAccessLog } from "../observe/access-log.ts";
import { createProxyMetrics } from "../observe/metrics.ts";
import { observe } from "./observe.ts";

function setup() {
  const registry = createRegistry("proxy", "test");
  const clock = createFakeClock();
  const metrics = createProxyMetrics(registry);
  metrics.stop();
  return {
    registry,
    clock,
    layer: observe({ metrics, clock, accessLog: createAccessLog({ share: 0, random: () => 0, log: silentLogger() }) }),
  };
}

function call(target: string): RawCall {
  const info = parseRequestInfo("GET", target);
  return {
    method: "GET",
    target,
    headers: {},
    body: null,
    signal: new AbortController().signal,
    record: { info, decision: "forwarded", lock: false },
  };
}

function fakeSource(): ByteSource & { sink: ByteSink | undefined; cancelled: boolean } {
  return {
    sink: undefined,
    cancelled: false,
    open(sink) {
      this.sink = sink;
      return { resume: () => undefined, cancel: (error) => this.cancel(error) };
    },
    cancel() {
      this.cancelled = true;
    },
  };
}

const ok =
  (body: Reply["body"]): RawHandler =>
  async ({ record }) => {
    record.asked = true;
    return { status: 200, headers: {}, body };
  };

describe("observe", () => {
  it("counts a request with what it was about and its code", async () => {
    const { registry, layer } = setup();
    await layer(ok(null))(call("/api/v1/namespaces/a/pods/b"));
    const text = await registry.metrics();
    expect(text).toContain(
      'ctrlmesh_proxy_requests_total{direction="outbound",verb="get",group="",resource="pods",code="200"} 1',
    );
    expect(text).toContain('ctrlmesh_proxy_decisions_total{decision="forwarded",verb="get",reason=""} 1');
  });

  it("counts a refusal with the code that it is answered with, and throws it on", async () => {
    const { registry, layer } = setup();
    const refusing = layer(async ({ record }) => {
      record.decision = "refused";
      throw new StatusError("Forbidden", "ctrlmesh: no");
    });
    await expect(refusing(call("/api/v1/namespaces/a/pods/b"))).rejects.toThrow("ctrlmesh: no");
    const text = await registry.metrics();
    expect(text).toContain('code="403"} 1');
    expect(text).toContain('decision="refused",verb="get",reason="bad-request"} 1');
  });

  it("leaves the time that others took out of the overhead", async () => {
    const { registry, clock, layer } = setup();
    const slow = layer(async ({ record }) => {
      await clock.advance(5_000);
      record.waitedMs = 4_900;
      return { status: 200, headers: {}, body: null };
    });
    await slow(call("/version"));
    const [, sum] =
      /overhead_seconds_sum (\S+)/.exec(await registry.getSingleMetricAsString("ctrlmesh_proxy_overhead_seconds")) ?? [];
    expect(Number(sum)).toBeCloseTo(0.1);
  });

  it("holds a watch open until its body ends, and leaves it out of the durations", async () => {
    const { registry, layer } = setup();
    const source = fakeSource();
    const reply = await layer(ok(source))(call("/api/v1/pods?watch=1"));
    const watches = () => registry.getSingleMetricAsString("ctrlmesh_proxy_active_watches");
    expect(await watches()).toContain("active_watches 1");
    (reply.body as ByteSource)
      .open({ write: () => true, end: () => undefined, abort: () => undefined })
      .cancel(new Error("gone"));
    expect(source.cancelled).toBe(true);
    expect(await watches()).toContain("active_watches 0");
    expect(await registry.getSingleMetricAsString("ctrlmesh_proxy_request_duration_seconds")).not.toContain("_count");
  });
});

describe("countedSource", () => {
  it.each(["end", "abort", "cancel"] as const)("tells the end once, with the bytes, after %s", (how) => {
    const source = fakeSource();
    const ends: number[] = [];
    const control = countedSource(source, (bytes) => ends.push(bytes)).open({
      write: () => true,
      end: () => undefined,
      abort: () => undefined,
    });
    source.sink?.write(Buffer.from("abc"));
    if (how === "end") source.sink?.end();
    else if (how === "abort") source.sink?.abort(new Error("broken"));
    control.cancel(new Error("gone"));
    expect(ends).toEqual([3]);
  });
});
