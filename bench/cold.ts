// GETs through a proxy that started a second ago, and has warmed up since, at three rates. A real operator
// sends few requests a second, so that V8 compiles little of its proxy's code for long.
import { getAtRate, keepConnection } from "./kept-connection.ts";
import { GET } from "./requests.ts";
import { inTurn, median, quantile, type Row } from "./table.ts";
import { ownProcess, restartAll } from "./way.ts";
import type { Endpoint, Side } from "./world.ts";

/** Requests a second. */
const RATES = [5, 50, 500];
const MAX_REQUESTS = 1_000;
const MAX_SECONDS = 20;
const PER_TURN = 50;

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
      const medianOf = (side: keyof typeof figures) => median(figures[side].map((each) => each[name]));
      rows.push({ section, name, unit: "ms", direct: medianOf("direct"), proxied: medianOf("proxied") });
    }
  }
  return rows;
}

interface Figures {
  readonly p50: number;
  readonly p99: number;
}

/** Each side in turns of some requests, over one connection that stays open. At most `rate` requests a second. */
async function paced(endpoints: Readonly<Record<"direct" | "proxied", Endpoint>>, rate: number, requests: number) {
  const connections = { direct: await keepConnection(endpoints.direct), proxied: await keepConnection(endpoints.proxied) };
  const times = { direct: [] as number[], proxied: [] as number[] };
  for (let turn = 0; turn < requests / PER_TURN; turn++) {
    for (const side of inTurn(turn)) times[side].push(...(await getAtRate(connections[side], GET.path, PER_TURN, rate)));
  }
  await Promise.all(Object.values(connections).map((connection) => connection.close()));
  return times;
}
