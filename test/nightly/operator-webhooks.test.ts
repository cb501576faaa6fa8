// 10,000 reviews of an operator's webhooks while namespaces move: test/e2e/operator-webhooks.test.ts with more calls.
import { expect, it } from "vitest";
import { admitWhileMoving } from "../support/install/admit-while-moving.ts";
import { startGadgetWorld } from "../support/install/gadget-world.ts";
import { describeWithTestNode } from "../support/requirements.ts";

const CALLS = 5_000; // two reviews each

describeWithTestNode("10,000 reviews of an operator's webhooks", () => {
  it("are each answered once and by the owner while namespaces move, without a failed call", async () => {
    const world = await startGadgetWorld();
    try {
      const { failed, wrong, answeredTwice, reviews, moves } = await admitWhileMoving(world, CALLS);
      expect({ failed, wrong, answeredTwice }).toEqual({ failed: [], wrong: [], answeredTwice: [] });
      expect(reviews).toBeGreaterThanOrEqual(2 * CALLS);
      expect(moves).toBeGreaterThan(10);
    } finally {
      await world.stop();
    }
  }, 300_000);
});
