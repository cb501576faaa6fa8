// The successful writes per second of each pod, from the metrics of its proxy: what the query of docs/tasks/autoscale-an-operator.md gives.
import { setTimeout as sleep } from "node:timers/promises";
import type { PodRunner, RunnerPod } from "../pod-runner.ts";
import { proxyReady } from "../proxy-launcher.ts";
import { readMetrics } from "../proxy-metrics.ts";

const METRIC = "ctrlmesh_proxy_requests_total";
const WRITES = ["create", "update", "patch", "delete"].flatMap((verb) => ["200", "201"].map((code) => ({ verb, code })));
const SCRAPE_MS = 5_000;
/** The range of the rate. */
const RANGE_MS = 30_000;

interface Sample {
  readonly atMs: number;
  readonly writes: number;
}

export interface WriteRates {
  /** By the pod's name. A pod with fewer than two samples has no rate. */
  read(): ReadonlyMap<string, number>;
  stop(): Promise<void>;
}

export function startWriteRates(runner: PodRunner): WriteRates {
  const samples = new Map<string, Sample[]>();
  const ending = new AbortController();

  async function scrape({ uid, processes }: RunnerPod): Promise<void> {
    if (processes.proxy === undefined || processes.proxy.exited) return;
    const metrics = await readMetrics(proxyReady(processes.proxy).healthUrl).catch(() => undefined);
    if (metrics === undefined) return;
    const all = WRITES.map((labels) => metrics.sum(METRIC, labels) - metrics.sum(METRIC, { ...labels, resource: "leases" }));
    const sample = { atMs: Date.now(), writes: all.reduce((sum, count) => sum + count, 0) };
    const recent = (samples.get(uid) ?? []).filter(
      ({ atMs, writes }) => sample.atMs - atMs <= RANGE_MS && writes <= sample.writes,
    );
    samples.set(uid, [...recent, sample]);
  }

  const scraping = (async () => {
    while (!ending.signal.aborted) {
      await Promise.all([...runner.pods.values()].map(scrape));
      await sleep(SCRAPE_MS, undefined, { signal: ending.signal }).catch(() => undefined);
    }
  })();

  return {
    read() {
      const rates = [...runner.pods.values()].flatMap(({ name, uid }): [string, number][] => {
        const own = samples.get(uid) ?? [];
        const [first, last] = [own[0], own.at(-1)];
        if (first === undefined || last === undefined || first === last) return [];
        return [[name, ((last.writes - first.writes) * 1000) / (last.atMs - first.atMs)]];
      });
      return new Map(rates);
    },
    async stop() {
      ending.abort();
      await scraping;
    },
  };
}
