// GETs of a proxy that has just started, at the pace of an operator: an operator sends few requests a second,
// so the code of its proxy stays cold for long. Direct requests and proxied requests alternate.
import { setTimeout as sleep } from "node:timers/promises";
import { keepConnection } from "./against/kept-connection.ts";
import { ownProcess, restartAll } from "./against/way.ts";
import { GET } from "./requests.ts";
import { inTurn, median, quantile, type Row } from "./table.ts";
import type { Endpoint, Side } from "./world.ts";

/** Requests a second. */
const RATES = [5, 50, 500];
const MAX_REQUESTS = 1_000;
const MAX_SECONDS = 20;

interface ColdTurns {
  readonly direct: Endpoint;
  readonly proxied: Side;
  readonly rounds: number;
}

export async function coldRows({ direct, proxied, rounds }: ColdTurns): Promise<Row[]> {
  const rows: Row[] = [];
  for (const rate of RATES) {
    const requests = Math.min(MAX_REQUESTS, rate * MAX_SECONDS);
    const figures = { direct: [] as Figures[], proxied: [] as Figures[] };
    for (let round = 0; round < rounds; round++) {
      await restartAll([{ name: "ours", endpoint: proxied, proxy: ownProcess(proxied) }]);
      const times = await paced({ direct, proxied }, rate, requests);
      for (const side of inTurn(0)) figures[side].push({ p50: median(times[side]), p99: quantile(times[side], 0.99) });
    }
    const section = `GET at ${rate}/s, the first ${requests} of a new proxy`;
    for (const name of ["p50", "p99"] as const) {
      const of = (side: keyof typeof figures) => median(figures[side].map((each) => each[name]));
      rows.push({ section, name, unit: "ms", direct: of("direct"), proxied: of("proxied") });
    }
  }
  return rows;
}

interface Figures {
  readonly p50: number;
  readonly p99: number;
}

/** Both sides get `rate` requests a second, each over one connection that stays open. */
async function paced(endpoints: Readonly<Record<"direct" | "proxied", Endpoint>>, rate: number, requests: number) {
  const connections = { direct: await keepConnection(endpoints.direct), proxied: await keepConnection(endpoints.proxied) };
  const times = { direct: [] as number[], proxied: [] as number[] };
  const startMs = performance.now();
  for (let index = 0; index < requests; index++) {
    for (const [turn, side] of inTurn(index).entries()) {
      const atMs = startMs + ((index + turn / 2) * 1_000) / rate;
      await sleep(Math.max(0, atMs - performance.now()));
      times[side].push(await connections[side].get(GET.path));
    }
  }
  await Promise.all(Object.values(connections).map((connection) => connection.close()));
  return times;
}
