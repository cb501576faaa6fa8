// Lists all objects with each way of filtering: by the API server (server-side) and by the proxy from the bytes (proxy-side).
// Direct requests and proxied requests alternate. Called by main.ts.
import { readMetrics } from "../test/support/proxy-metrics.ts";
import { drain } from "./load.ts";
import { inTurn, median, type Row, type Target } from "./table.ts";
import type { Endpoint, Side } from "./world.ts";

const ENCODINGS = { JSON: "application/json", protobuf: "application/vnd.kubernetes.protobuf" } as const;
const PATH = "/api/v1/configmaps";

export interface ListWork {
  /** The way of filtering, as in the metric `ctrlmesh_proxy_pushdown_total{plan}`. */
  readonly plan: string;
  readonly name: string;
  readonly side: Side;
  readonly target?: Target;
}

export async function listRows(direct: Endpoint, works: readonly ListWork[], objects: number, rounds: number): Promise<Row[]> {
  const rows: Row[] = [];
  for (const { plan, name, side, target } of works) {
    await expectPlan(side, plan);
    for (const [encoding, accept] of Object.entries(ENCODINGS)) {
      const times = { direct: [] as number[], proxied: [] as number[] };
      for (let round = 0; round <= rounds; round++) {
        for (const which of inTurn(round)) {
          const ms = await timed(() => drain(which === "direct" ? direct : side, PATH, accept));
          if (round > 0) times[which].push(ms);
        }
      }
      await expectPlan(side, plan); // the plan has not changed
      const section = `LIST ${objects} ${encoding}`;
      const figures = { direct: median(times.direct), proxied: median(times.proxied) };
      rows.push({ section, name, unit: "ms", ...figures, ...(target === undefined ? {} : { target }) });
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
async function expectPlan(side: Side, plan: string): Promise<void> {
  const count = async () => (await readMetrics(side.pod.healthUrl)).sum("ctrlmesh_proxy_pushdown_total", { plan });
  const before = await count();
  for (let attempt = 0; attempt < 10; attempt++) {
    await drain(side, `${PATH}?limit=1`, ENCODINGS.JSON);
    if ((await count()) > before) return;
  }
  throw new Error(`the proxy of ${side.pod.name} does not use the plan "${plan}"`);
}
