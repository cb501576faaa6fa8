// `npm run test:node`: the guides on real Kubernetes nodes, and what happens to them, one flow after the other on one cluster, since each begins
// where the one before has ended. Runs only in the namespaces that enter.ts makes.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { commandLine } from "./flows/command-line.ts";
import { costs } from "./flows/costs.ts";
import { disturbances } from "./flows/disturbances.ts";
import { drain } from "./flows/drain.ts";
import { comeBack, leave } from "./flows/leave.ts";
import { limits } from "./flows/limits.ts";
import { lostNode } from "./flows/lost-node.ts";
import { moves } from "./flows/moves.ts";
import { quickstart } from "./flows/quickstart.ts";
import { shards } from "./flows/shards.ts";
import { starts } from "./flows/starts.ts";
import { stops } from "./flows/stops.ts";
import { upgrade } from "./flows/upgrade.ts";
import { webhooks } from "./flows/webhooks.ts";
import { startWorld, type World, wrongWritersOf } from "./world.ts";

const START_MS = 300_000;

describe("on real nodes", () => {
  let world: World;
  beforeAll(async () => {
    world = await startWorld(process.env.CTRLMESH_REAL_NODE ?? "");
    // Beside the first flows; its own flows wait for it.
    world.startSecondNode().catch(() => undefined);
  }, START_MS);
  afterAll(() => world?.changes.stop());
  const get = () => world;

  quickstart(get);
  commandLine(get);
  starts(get);
  moves(get);
  disturbances(get);
  costs(get);
  stops(get);
  drain(get);
  lostNode(get);
  limits(get);
  it("only the subset that owned a tenant's namespace wrote there, in all flows so far", () => {
    expect(wrongWritersOf(world)).toEqual([]);
  });
  shards(get);
  comeBack(get);
  webhooks(get);
  leave(get);
  upgrade(get);
});
