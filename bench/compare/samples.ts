// What the comparison measures: one sample for each row, proxy and round. Pure.
import { median } from "../table.ts";
import type { Way } from "../way.ts";

export const ROWS = {
  warm: { name: "GET, 1 connection, p50, after 10,000 requests", unit: "ms", shows: "ratio" },
  cold: { name: "GET, 1 connection, p50, first 3,000 requests", unit: "ms", shows: "ratio" },
  pacedFirst: { name: "GET at 10 a second, p50, first 130 of 400", unit: "ms", shows: "added" },
  pacedLast: { name: "GET at 10 a second, p50, last 130 of 400", unit: "ms", shows: "added" },
  eightCold: { name: "GET, 8 connections, first 3,000 requests", unit: "/s", shows: "ratio" },
  eightWarm: { name: "GET, 8 connections, after 13,000 requests", unit: "/s", shows: "ratio" },
  listJson: { name: "LIST all, JSON, median of seven", unit: "ms", shows: "ratio" },
  listJsonSlowest: { name: "LIST all, JSON, slowest of seven", unit: "ms", shows: "ratio" },
  listProtobuf: { name: "LIST all, protobuf, median of seven", unit: "ms", shows: "ratio" },
  listProtobufSlowest: { name: "LIST all, protobuf, slowest of seven", unit: "ms", shows: "ratio" },
  ownJson: { name: "LIST own by selector, JSON, median of seven", unit: "ms", shows: "ratio" },
  ownProtobuf: { name: "LIST own by selector, protobuf, median of seven", unit: "ms", shows: "ratio" },
  watchP50: { name: "WATCH at 50 events/s, arrival, p50", unit: "ms", shows: "ratio" },
  watchP99: { name: "WATCH at 50 events/s, arrival, p99", unit: "ms", shows: "ratio" },
} as const;

export type RowName = keyof typeof ROWS;
export type ProxyName = Exclude<Way["name"], "direct">;

export interface Sample {
  readonly row: RowName;
  readonly proxy: ProxyName;
  /** The figure of the direct way in the same round. */
  readonly direct: number;
  readonly proxied: number;
}

/** What the last process of one proxy used in one round, from its start to the end of the round. */
export interface RoundCost {
  readonly proxy: ProxyName;
  /** At the end. */
  readonly rssMb: number;
  readonly cpuSeconds: number;
}

export interface Comparison {
  readonly samples: readonly Sample[];
  readonly costs: readonly RoundCost[];
}

/** One sample for each proxy, from the figures of all ways in one round. */
export function samplesOf(row: RowName, figures: ReadonlyMap<Way, number>): Sample[] {
  const direct = [...figures].find(([{ name }]) => name === "direct")?.[1] ?? Number.NaN;
  return [...figures].flatMap(([{ name: proxy }, proxied]) => (proxy === "direct" ? [] : [{ row, proxy, direct, proxied }]));
}

export function mediansOf(figures: ReadonlyMap<Way, readonly number[]>): ReadonlyMap<Way, number> {
  return new Map([...figures].map(([way, all]) => [way, median(all)]));
}
