// Measures the time that the proxy adds to a small request, and the requests per second at 1, 8 and 64
// connections. Direct requests and proxied requests alternate within each round.
import { load, type Request } from "./load.ts";
import { inTurn, median, quantile, type Row, type Target } from "./table.ts";
import { type Endpoint, OWN_NAMESPACE } from "./world.ts";

export interface Turns {
  readonly direct: Endpoint;
  readonly proxied: Endpoint;
  /** The number of measured rounds. One round before them is not measured, so that caches are warm. */
  readonly rounds: number;
}

const PATH = `/api/v1/namespaces/${OWN_NAMESPACE}/configmaps/cm-000000`;
export const GET: Request = { method: "GET", path: PATH };
const TARGETS: Readonly<Record<string, { p50?: Target; rate?: Target }>> = {
  "GET/1": { p50: { of: "added", atMost: 0.3 } },
  "GET/8": { rate: { of: "ratio", atLeast: 0.85 } },
};

export async function requestRows(turns: Turns): Promise<Row[]> {
  let counter = 0;
  const patch: Request = {
    method: "PATCH",
    path: PATH,
    headers: { "content-type": "application/merge-patch+json" },
    body: () => JSON.stringify({ data: { counter: String(++counter) } }),
  };
  const rows: Row[] = [];
  for (const connections of [1, 8, 64]) rows.push(...(await requestRow(GET, connections, turns)));
  for (const connections of [1, 8]) rows.push(...(await requestRow(patch, connections, turns)));
  return rows;
}

/** The same GETs through a proxy that only forwards. This is the minimum cost of a proxy. */
export async function bareRows(turns: Turns): Promise<Row[]> {
  const rows: Row[] = [];
  for (const connections of [1, 8]) rows.push(...(await requestRow(GET, connections, turns)));
  return rows.map(({ target: _, ...row }) => ({ ...row, section: `bare Node proxy, ${row.section}` }));
}

async function requestRow(request: Request, connections: number, { direct, proxied, rounds }: Turns): Promise<Row[]> {
  const durationMs = 1_500;
  const results = { direct: [] as Figures[], proxied: [] as Figures[] };
  for (let round = 0; round <= rounds; round++) {
    for (const side of inTurn(round)) {
      const endpoint = side === "direct" ? direct : proxied;
      const figures = figuresOf(await load(endpoint, request, { connections, durationMs }));
      if (round > 0) results[side].push(figures);
    }
  }
  const targets = TARGETS[`${request.method}/${connections}`] ?? {};
  const row = (name: string, unit: Row["unit"], of: keyof Figures, target?: Target): Row => ({
    section: `${request.method}, ${connections} connection${connections === 1 ? "" : "s"}`,
    name,
    unit,
    direct: median(results.direct.map((each) => each[of])),
    proxied: median(results.proxied.map((each) => each[of])),
    ...(target === undefined ? {} : { target }),
  });
  return [row("p50", "ms", "p50", targets.p50), row("p99", "ms", "p99"), row("requests", "/s", "rate", targets.rate)];
}

interface Figures {
  readonly p50: number;
  readonly p99: number;
  readonly rate: number;
}

function figuresOf({ times, requestsPerSecond }: Awaited<ReturnType<typeof load>>): Figures {
  return { p50: quantile(times, 0.5), p99: quantile(times, 0.99), rate: requestsPerSecond };
}
