// Watches through the proxy as a model: whatever happens (watch-script.ts), clients are shown nothing that is not their subset's, and once
// the world is quiet each knows what it may rely on (watch-promises.ts).
import fc from "fast-check";
import { expect, it } from "vitest";
import { createRegistry } from "../../src/base/metrics.ts";
import { createStreamMetrics } from "../../src/proxy/filter/stream-metrics.ts";
import { createPlanLog, type PlanLog } from "../../src/proxy/outbound/lists/plan-log.ts";
import { budget } from "../support/fuzz.ts";
import { expectOrder, expectOwnWrites, expectQuiet } from "./watch-promises.ts";
import { NAMESPACES, type Script, script } from "./watch-script.ts";
import { rest, runStep } from "./watch-steps.ts";
import { World } from "./watch-world.ts";

it("shows nothing foreign, and all of the slice in the end, whatever happens meanwhile", async () => {
  const registry = createRegistry("proxy", "test");
  const metrics = createStreamMetrics(registry);
  let [runs, ordered, ownWrites, begunByNamespace] = [0, 0, 0, 0];
  const plans: PlanLog = {
    ...createPlanLog({ now: () => 0 }),
    record({ info }, { plan }) {
      if (info.verb === "watch" && plan === "by-namespace") begunByNamespace++;
    },
  };
  const run = async ({ commands, ...start }: Script) => {
    const world = new World(start, { metrics, plans });
    for (const command of commands) await runStep(command, world);
    await rest(world, 8);
    expectQuiet(world);
    const own = NAMESPACES.find(world.isMine);
    if (own !== undefined && (await expectOwnWrites(world, own))) ownWrites++;
    expectQuiet(world);
    const known = NAMESPACES.find((name) => world.places.get(name) !== "unknown");
    if (known !== undefined && (await expectOrder(world, known))) ordered++;
    expectQuiet(world);
    runs++;
  };
  // A run that hangs would pass as one that the budget has cut off.
  await fc.assert(fc.asyncProperty(script, run), { ...budget(8_000), timeout: 1_500 });
  // A model that never comes to it proves nothing.
  const text = await registry.getSingleMetricAsString("ctrlmesh_proxy_watch_renewals_total");
  const renewals = (result: string) => Number(new RegExp(`result="${result}".* (\\d+)$`, "m").exec(text)?.[1] ?? 0);
  const narrowed = await registry.getSingleMetricAsString("ctrlmesh_proxy_pushdown_total");
  const planned = (plan: string) => Number(new RegExp(`plan="${plan}".* (\\d+)$`, "m").exec(narrowed)?.[1] ?? 0);
  for (const count of [renewals("renewed"), renewals("expired"), ordered, ownWrites, planned("by-namespace"), begunByNamespace])
    expect(count).toBeGreaterThanOrEqual(Math.floor(runs / 20));
}, 60_000);
