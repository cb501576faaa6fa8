// The proxy's metrics about requests. Invariants: the number of label sets is bounded; a request only touches
// plain numbers (metric-cells.ts), found by a few look-ups.
import { type CounterCell, createCounterCells, createHistogramCells } from "../../base/metric-cells.ts";
import { Gauge, measureEventLoop, type Registry } from "../../base/metrics.ts";
import { rememberNames } from "../../base/remember.ts";
import type { RequestInfo } from "../../kube/request-info.ts";
import type { CallRecord } from "../call/call.ts";
import type { LayerTiming } from "../http/handler.ts";

/** Resources with labels of their own; further ones share the label "other". */
const MAX_RESOURCES = 250;

/** Answers without an end of their own. */
const STREAM_KINDS = ["watch", "log", "proxy", "tunnel"] as const;
export type StreamKind = (typeof STREAM_KINDS)[number];

export type ProxyMetrics = ReturnType<typeof createProxyMetrics>;

const REQUEST_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const OVERHEAD_BUCKETS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1];
const LAYER_BUCKETS = [0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.1, 1, 10];

export function createProxyMetrics(registry: Registry) {
  const requests = countRequests(registry);
  const decisions = countDecisions(registry);
  const durationCells = createHistogramCells({
    name: "ctrlmesh_proxy_request_duration_seconds",
    help: "From the request to the last byte of the answer, without watches and other streams.",
    labelNames: ["verb"],
    buckets: REQUEST_BUCKETS,
    registry,
  });
  const durations = rememberNames((verb: string) => durationCells({ verb }));
  const overhead = createHistogramCells({
    name: "ctrlmesh_proxy_overhead_seconds",
    help: "From the request to the head of the answer, without the time spent waiting for the API server or the manager.",
    buckets: OVERHEAD_BUCKETS,
    registry,
  })({});
  const layerCells = createHistogramCells({
    name: "ctrlmesh_proxy_layer_seconds",
    help: "Time until the head of the answer by the layer that held the call, of one call in 64. isolate and upstream wait for others.",
    labelNames: ["layer"],
    buckets: LAYER_BUCKETS,
    registry,
  });
  const layers = rememberNames((layer: string) => layerCells({ layer }));
  const open = countStreams(registry);
  const stop = measureEventLoop(registry, "proxy");

  return {
    /** Counts a reply at its head. @param seconds since the request came */
    replied(record: CallRecord, code: number, seconds: number): void {
      requests(record, code).value++;
      decisions(record).value++;
      overhead.observe(Math.max(0, seconds - (record.waitedMs ?? 0) / 1000));
    },
    /** For a request that is no stream, once its whole reply has been sent. */
    finished: (record: CallRecord, seconds: number): void => durations(verbOf(record.info)).observe(seconds),
    timed({ names, ms }: LayerTiming): void {
      for (const [index, name] of names.entries()) layers(name).observe((ms[index] ?? 0) / 1000);
    },
    streamOpened(kind: StreamKind): void {
      open[kind]++;
    },
    streamClosed(kind: StreamKind): void {
      open[kind]--;
    },
    strippedBytes: createCounterCells({
      name: "ctrlmesh_proxy_stripped_bytes_total",
      help: "Bytes of managedFields that were taken out of what the operator reads.",
      registry,
    })({}),
    stop,
  };
}

function countRequests(registry: Registry): (record: CallRecord, code: number) => CounterCell {
  const cells = createCounterCells({
    name: "ctrlmesh_proxy_requests_total",
    help: "Requests by what they are about and the code of the answer.",
    labelNames: ["direction", "verb", "group", "resource", "code"],
    registry,
  });
  const of = byResource(MAX_RESOURCES, (group, resource) =>
    rememberNames((verb: string) =>
      rememberNames((code: number) => cells({ direction: "outbound", verb, group, resource, code })),
    ),
  );
  return ({ info, asked = false }, code) => of(info, code, asked)(verbOf(info))(code);
}

function countDecisions(registry: Registry): (record: CallRecord) => CounterCell {
  const cells = createCounterCells({
    name: "ctrlmesh_proxy_decisions_total",
    help: "What the proxy did with requests, and why where it is not the ordinary way.",
    labelNames: ["decision", "verb", "reason"],
    registry,
  });
  const of = rememberNames((decision: string) =>
    rememberNames((reason: string) => rememberNames((verb: string) => cells({ decision, verb, reason }))),
  );
  return ({ decision, reason = "", info }) => of(decision)(reason)(verbOf(info));
}

function countStreams(registry: Registry): Record<StreamKind, number> {
  const open: Record<StreamKind, number> = { watch: 0, log: 0, proxy: 0, tunnel: 0 };
  new Gauge({
    name: "ctrlmesh_proxy_open_streams",
    help: "Answers without an end of their own that are open now: watches, followed logs, proxied bodies, tunnels.",
    labelNames: ["kind"],
    registers: [registry],
    collect() {
      for (const kind of STREAM_KINDS) this.set({ kind }, open[kind]);
    },
  });
  new Gauge({
    name: "ctrlmesh_proxy_active_watches",
    help: "Watches that are open now.",
    registers: [registry],
    collect() {
      this.set(open.watch);
    },
  });
  return open;
}

/**
 * Finds the value that `make` has made for the resource of a request. Clients choose paths freely, so a
 * resource gets a value of its own only after a good answer of the API server (`asked`), and all resources
 * beyond `maxResources` share one.
 */
export function byResource<T>(
  maxResources: number,
  make: (group: string, resource: string) => T,
): (info: RequestInfo | undefined, code: number, asked: boolean) => T {
  const groups = new Map<string, Map<string, T>>();
  const none = make("", "");
  const other = make("other", "other");
  let knownCount = 0;
  return (info, code, asked) => {
    if (info?.kind !== "resource") return none;
    const { group, resource } = info;
    const knownValue = groups.get(group)?.get(resource);
    if (knownValue !== undefined) return knownValue;
    if (!asked || code >= 300 || knownCount >= maxResources) return other;
    knownCount++;
    const made = make(group, resource);
    const resources = groups.get(group);
    if (resources === undefined) groups.set(group, new Map([[resource, made]]));
    else resources.set(resource, made);
    return made;
  };
}

export function verbOf(info: RequestInfo | undefined): string {
  return info === undefined ? "unreadable" : info.verb;
}
