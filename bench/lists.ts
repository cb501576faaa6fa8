// Lists all objects with each way of filtering: by the API server (server-side) and by the proxy from the
// bytes (proxy-side). Or reads the initial events of a watch, with which client-go begins. Direct requests
// and proxied requests alternate.
import { cpuSecondsOf } from "../test/support/process-memory.ts";
import { readMetrics } from "../test/support/proxy-metrics.ts";
import { drain } from "./load.ts";
import { inTurn, median, type Row, type Target } from "./table.ts";
import type { Endpoint, Side } from "./world.ts";

const ENCODINGS = { JSON: "application/json", protobuf: "application/vnd.kubernetes.protobuf" } as const;
const PATH = "/api/v1/configmaps?";
const WATCH_LIST = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&";
const INITIAL_EVENTS_END = "k8s.io/initial-events-end";
/** With this parameter, which says nothing new to the API server, the proxy sends no lists by namespace. */
const ONE_LIST = "pretty=false";

export interface ListWork {
  /** The way of filtering, as in the metric `ctrlmesh_proxy_pushdown_total{plan}`. */
  readonly plan: string;
  readonly name: string;
  /** One list over all namespaces, although lists by namespace would be cheaper. */
  readonly isOneList?: boolean;
  /** The initial events of a watch, to their end. */
  readonly isWatch?: boolean;
  readonly side: Side;
  readonly targets?: Readonly<Record<keyof typeof ENCODINGS, Target>>;
}

export interface ListsOptions {
  readonly objects: number;
  readonly rounds: number;
  /** The process of the API server and its etcd. */
  readonly apiServerPid: number;
}

export async function listRows(direct: Endpoint, works: readonly ListWork[], options: ListsOptions): Promise<Row[]> {
  const { objects, rounds, apiServerPid } = options;
  const rows: Row[] = [];
  for (const { plan, name, isOneList = false, isWatch = false, side, targets } of works) {
    const path = `${PATH}${isWatch ? WATCH_LIST : ""}${isOneList ? ONE_LIST : ""}`;
    const read = (from: Endpoint, accept: string) => drain(from, path, accept, isWatch ? INITIAL_EVENTS_END : undefined);
    const ask = () => read(side, ENCODINGS.JSON);
    const readBytes = async () =>
      (await readMetrics(side.pod.healthUrl)).sum("ctrlmesh_proxy_pushdown_bytes_total", { plan, side: "read" });
    await expectPlan(side, plan, ask);
    for (const encoding of ["JSON", "protobuf"] as const) {
      const accept = ENCODINGS[encoding];
      const times = { direct: [] as number[], proxied: [] as number[] };
      const cpuMs = { direct: 0, proxied: 0 };
      let bytes = 0;
      const bytesBefore = await readBytes();
      for (let round = 0; round <= rounds; round++) {
        for (const which of inTurn(round)) {
          const cpuBefore = cpuSecondsOf(apiServerPid);
          const ms = await timed(async () => {
            const received = await read(which === "direct" ? direct : side, accept);
            if (which === "direct") bytes = received;
          });
          if (round === 0) continue;
          times[which].push(ms);
          cpuMs[which] += (1_000 * (cpuSecondsOf(apiServerPid) - cpuBefore)) / rounds;
        }
      }
      const proxiedBytes = ((await readBytes()) - bytesBefore) / (rounds + 1);
      await expectPlan(side, plan, ask); // the plan has not changed
      const section = `${isWatch ? "WATCHLIST" : "LIST"} ${objects} ${encoding}`;
      const figures = { direct: median(times.direct), proxied: median(times.proxied) };
      rows.push({ section, name, unit: "ms", ...figures, ...(targets === undefined ? {} : { target: targets[encoding] }) });
      rows.push({ section, name: `${name}: CPU of the API server`, unit: "ms", ...cpuMs });
      const mb = { direct: bytes / 1e6, proxied: proxiedBytes / 1e6 };
      rows.push({ section, name: `${name}: bytes of the API server`, unit: "MB", ...mb });
    }
  }
  return rows;
}

async function timed(run: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await run();
  return performance.now() - start;
}

// The proxy must use the plan that the row names.
async function expectPlan(side: Side, plan: string, ask: () => Promise<unknown>): Promise<void> {
  const count = async () => (await readMetrics(side.pod.healthUrl)).sum("ctrlmesh_proxy_pushdown_total", { plan });
  const before = await count();
  for (let attempt = 0; attempt < 10; attempt++) {
    await ask();
    if ((await count()) > before) return;
  }
  throw new Error(`the proxy of ${side.pod.name} does not use the plan "${plan}"`);
}
