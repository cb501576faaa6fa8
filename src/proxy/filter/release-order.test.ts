import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createReleaseOrder, rankOf } from "./release-order.ts";

const MIB = 1024 * 1024;

function setup() {
  const clock = createFakeClock();
  const order = createReleaseOrder(clock);
  const shown: string[] = [];
  const enter = (name: string, rank = 0) => {
    const ticket = order.enter(rank);
    return { leave: ticket.leave, ready: (bytes = 1) => void ticket.ready(bytes).then(() => shown.push(name)) };
  };
  return { clock, shown, enter };
}

describe("the watches that show one move", () => {
  it("show it in the order of their ranks, a moment apart, each rank as a whole", async () => {
    const { clock, shown, enter } = setup();
    const [custom, namespaces, secrets, pods] = [
      enter("custom", 2),
      enter("namespaces", 0),
      enter("secrets", 1),
      enter("pods", 1),
    ];
    custom.ready();
    secrets.ready();
    await clock.advance(500);
    expect(shown).toEqual([]);
    namespaces.ready();
    await clock.advance(200);
    expect(shown).toEqual(["namespaces"]);
    pods.ready();
    await clock.flush();
    expect(shown).toEqual(["namespaces", "secrets", "pods"]);
    await clock.advance(100);
    expect(shown).toEqual(["namespaces", "secrets", "pods", "custom"]);
    await clock.advance(0);
    expect(clock.pending).toBe(0);
  });

  it("wait a second for the slowest, which does not wait then", async () => {
    const { clock, shown, enter } = setup();
    const [slow, quick] = [enter("slow"), enter("quick", 1)];
    quick.ready();
    await clock.advance(1_000);
    expect(shown).toEqual(["quick"]);
    slow.ready();
    await clock.advance(100);
    expect(shown).toEqual(["quick", "slow"]);
  });

  it("do not wait for one that has given up", async () => {
    const { clock, shown, enter } = setup();
    const [quick, failed] = [enter("quick"), enter("failed")];
    quick.ready();
    failed.leave();
    failed.leave();
    await clock.advance(0);
    expect(shown).toEqual(["quick"]);
    expect(clock.pending).toBe(0);
  });

  it("do not wait while they hold too much", async () => {
    const { clock, shown, enter } = setup();
    const watches = [enter("large"), enter("larger"), enter("asking")];
    watches[0]?.ready(20 * MIB);
    await clock.flush();
    expect(shown).toEqual([]);
    watches[1]?.ready(20 * MIB);
    await clock.flush();
    expect(shown).toEqual(["large", "larger"]);
  });

  it("do not wait for those that begin after their release", async () => {
    const { clock, shown, enter } = setup();
    enter("first").ready();
    await clock.advance(0);
    const [late, later] = [enter("late"), enter("later")];
    late.ready();
    await clock.flush();
    expect(shown).toEqual(["first"]);
    later.ready();
    await clock.flush();
    expect(shown).toEqual(["first", "late", "later"]);
  });
});

describe("the rank of a resource", () => {
  it.each([
    ["namespaces", { group: "", resource: "namespaces" }, 0],
    ["a built-in kind", { group: "", resource: "pods" }, 1],
    ["a built-in kind of a group", { group: "rbac.authorization.k8s.io", resource: "roles" }, 1],
    ["a custom resource", { group: "monitoring.coreos.com", resource: "prometheuses" }, 2],
    ["a custom resource of a Kubernetes group", { group: "gateway.networking.k8s.io", resource: "gateways" }, 2],
    ["another thing named namespaces", { group: "demo.io", resource: "namespaces" }, 2],
  ])("of %s is reversed for a loss", (_, target, rank) => {
    expect([rankOf(target, true), rankOf(target, false)]).toEqual([rank, 2 - rank]);
  });
});
