// The proxy's metrics about requests. Invariant: the number of label sets is bounded. A client chooses paths freely, so a
// resource gets a label of its own only after the API server has answered for it, and only so many do.
import { monitorEventLoopDelay } from "node:perf_hooks";
import { Counter, Gauge, Histogram, type Registry } from "../base/metrics.ts";
import type { RequestInfo } from "../kube/request-info.ts";
import type { CallRecord } from "./pipeline/handler.ts";

/** Resources with labels of their own; further ones share the label "other". */
const MAX_RESOURCES = 250;

/** The bounded labels of one request. */
export interface RequestLabels {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
}

export interface ProxyMetrics {
  /** A reply's head is ready (or an error is): counts it. `seconds` since the request came. */
  replied(record: CallRecord, code: number, seconds: number): void;
  /** The whole reply of a request that has an end has been sent. */
  finished(record: CallRecord, seconds: number): void;
  watchOpened(): void;
  watchClosed(): void;
  /** Ends the measuring of the event loop. */
  stop(): void;
}

const REQUEST_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const OVERHEAD_BUCKETS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1];

/** Registers the metrics. */
export function createProxyMetrics(registry: Registry): ProxyMetrics {
  const registers = [registry];
  const requests = new Counter({
    name: "ctrlmesh_proxy_requests_total",
    help: "Requests by what they are about and the code of the answer.",
    labelNames: ["direction", "verb", "group", "resource", "code"],
    registers,
  });
  const decisions = new Counter({
    name: "ctrlmesh_proxy_decisions_total",
    help: "What the proxy did with requests.",
    labelNames: ["decision", "verb"],
    registers,
  });
  const duration = new Histogram({
    name: "ctrlmesh_proxy_request_duration_seconds",
    help: "From the request to the last byte of the answer, without watches.",
    labelNames: ["verb"],
    buckets: REQUEST_BUCKETS,
    registers,
  });
  const overhead = new Histogram({
    name: "ctrlmesh_proxy_overhead_seconds",
    help: "From the request to the head of the answer, without the time spent waiting for the API server or the manager.",
    buckets: OVERHEAD_BUCKETS,
    registers,
  });
  const watches = new Gauge({ name: "ctrlmesh_proxy_active_watches", help: "Watches that are open now.", registers });
  const delay = measureEventLoop(registry);
  const labelsOf = createLabels(MAX_RESOURCES);

  return {
    replied(record, code, seconds) {
      const labels = labelsOf(record.info, code);
      requests.inc({ direction: "outbound", ...labels, code });
      decisions.inc({ decision: record.decision, verb: labels.verb });
      overhead.observe(Math.max(0, seconds - (record.waitedMs ?? 0) / 1000));
    },
    finished: (record, seconds) => duration.observe({ verb: verbOf(record.info) }, seconds),
    watchOpened: () => watches.inc(),
    watchClosed: () => watches.dec(),
    stop: () => void delay.disable(),
  };
}

/** Makes the function from requests to labels; it remembers which resources exist. */
export function createLabels(maxResources: number): (info: RequestInfo | undefined, code: number) => RequestLabels {
  const known = new Set<string>();
  return (info, code) => {
    const verb = verbOf(info);
    if (info?.kind !== "resource") return { verb, group: "", resource: "" };
    const { group, resource } = info;
    const key = `${group}/${resource}`;
    if (!known.has(key)) {
      if (code >= 300 || known.size >= maxResources) return { verb, group: "other", resource: "other" };
      known.add(key);
    }
    return { verb, group, resource };
  };
}

function verbOf(info: RequestInfo | undefined): string {
  return info === undefined ? "unreadable" : info.verb;
}

// Samples every 100 ms: enough to see a blocked loop, too rare to cost anything.
/** Time between two samples of the event loop's delay, in milliseconds. */
const SAMPLE_MS = 100;

function measureEventLoop(registry: Registry): ReturnType<typeof monitorEventLoopDelay> {
  const histogram = monitorEventLoopDelay({ resolution: SAMPLE_MS });
  histogram.enable();
  new Gauge({
    name: "ctrlmesh_proxy_event_loop_delay_seconds",
    help: "How late the event loop ran since the last scrape.",
    labelNames: ["quantile"],
    registers: [registry],
    collect() {
      // Node measures from one sample to the next, and so counts the wait between them as well.
      const seconds = (nanoseconds: number) =>
        Number.isFinite(nanoseconds) ? Math.max(0, nanoseconds / 1e9 - SAMPLE_MS / 1e3) : 0;
      this.set({ quantile: "0.5" }, seconds(histogram.percentile(50)));
      this.set({ quantile: "0.99" }, seconds(histogram.percentile(99)));
      this.set({ quantile: "1" }, seconds(histogram.max));
      histogram.reset();
    },
  });
  return histogram;
}
