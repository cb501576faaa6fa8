// An operator's webhooks on the real control plane, as in test/e2e/operator-webhooks.test.ts: 10,000 reviews while namespaces move, and a rollout of
// all pods under load.
import { afterAll, beforeAll, expect, it } from "vitest";
import { eventually } from "../support/eventually.ts";
import { startAdmissionLoad } from "../support/install/admission-load.ts";
import { admitWhileMoving } from "../support/install/admit-while-moving.ts";
import { type GadgetWorld, startGadgetWorld } from "../support/install/gadget-world.ts";
import { GADGET_NAMESPACE } from "../support/install/gadgets.ts";
import { describeWithTestNode } from "../support/requirements.ts";

const CALLS = 5_000; // two reviews each
const RIGHT = { wrong: [], answeredTwice: [] };

describeWithTestNode("an operator's webhooks, for longer", () => {
  let world: GadgetWorld;
  beforeAll(async () => {
    world = await startGadgetWorld();
  });
  afterAll(async () => {
    await world?.stop();
  });

  it("are each answered once and by the owner in 10,000 reviews while namespaces move, without a failed call", async () => {
    const result = await admitWhileMoving(world, CALLS);
    expect(result).toMatchObject({ ...RIGHT, failed: [] });
    expect(result.reviews).toBeGreaterThanOrEqual(2 * CALLS);
    expect(result.moves).toBeGreaterThan(10);
  }, 300_000);

  it("lose no call while all pods are replaced, one subset after the other", async () => {
    await world.addNamespace("team-a", "");
    await world.addNamespace("canary-a", "v2");
    const load = startAdmissionLoad(world.client, ["team-a", "canary-a"]);
    for (const workload of ["deployment/gadget", "deployment/gadget-canary"]) {
      await world.mesh.run("rollout", "restart", workload, "-n", GADGET_NAMESPACE);
      await world.mesh.rolledOut(workload, GADGET_NAMESPACE);
      const before = load.calls.length;
      await eventually(() => load.calls.length > before + 500, 60_000);
    }
    await load.end();
    expect(load.calls.flatMap(({ error }) => error ?? [])).toEqual([]);
    expect(await world.judge(load.calls)).toMatchObject(RIGHT);
  }, 300_000);
});
