// Lists all objects with each way of filtering: by the API server (server-side) and by the proxy from the bytes (proxy-side).
// Direct requests and proxied requests alternate. Called by main.ts.
import { cpuSecondsOf } from "../test/support/process-memory.ts";
import { readMetrics } from "../test/support/proxy-metrics.ts";
import { drain } from "./load.ts";
import { inTurn, median, type Row, type Target } from "./table.ts";
import type { Endpoint, Side } from "./world.ts";

const ENCODINGS = { JSON: "application/json", protobuf: "application/vnd.kubernetes.protobuf" } as const;
const PATH = "/api/v1/configmaps";
/** With this parameter, which says nothing new to the API server, the proxy sends no lists by namespace. */
const ONE_LIST = "?pretty=false";

export interface ListWork {
  /** The way of filtering, as in the metric `ctrlmesh_proxy_pushdown_total{plan}`. */
  readonly plan: string;
  readonly name: string;
  /** One list over all namespaces, although lists by namespace would be cheaper. */
  readonly isOneList?: boolean;
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
  for (const { plan, name, isOneList = false, side, targets } of works) {
    const path = isOneList ? `${PATH}${ONE_LIST}` : PATH;
    await expectPlan(side, plan, path);
    for (const encoding of ["JSON", "protobuf"] as const) {
      const accept = ENCODINGS[encoding];
      const times = { direct: [] as number[], proxied: [] as number[] };
      const cpuMs = { direct: 0, proxied: 0 };
      for (let round = 0; round <= rounds; round++) {
        for (const which of inTurn(round)) {
          const cpuBefore = cpuSecondsOf(apiServerPid);
          const ms = await timed(() => drain(which === "direct" ? direct : side, path, accept));
          if (round === 0) continue;
          times[which].push(ms);
          cpuMs[which] += (1_000 * (cpuSecondsOf(apiServerPid) - cpuBefore)) / rounds;
        }
      }
      await expectPlan(side, plan, path); // the plan has not changed
      const section = `LIST ${objects} ${encoding}`;
      const figures = { direct: median(times.direct), proxied: median(times.proxied) };
      rows.push({ section, name, unit: "ms", ...figures, ...(targets === undefined ? {} : { target: targets[encoding] }) });
      rows.push({ section, name: `${name}: CPU of the API server`, unit: "ms", ...cpuMs });
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
async function expectPlan(side: Side, plan: string, path: string): Promise<void> {
  const count = async () => (await readMetrics(side.pod.healthUrl)).sum("ctrlmesh_proxy_pushdown_total", { plan });
  const before = await count();
  for (let attempt = 0; attempt < 10; attempt++) {
    await drain(side, path, ENCODINGS.JSON);
    if ((await count()) > before) return;
  }
  throw new Error(`the proxy of ${side.pod.name} does not use the plan "${plan}"`);
}
