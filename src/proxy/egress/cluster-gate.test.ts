import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { snapshot, table } from "../../../test/support/route-table.ts";
import { runningPolicies } from "../../../test/support/running-policies.ts";
import { silentLogger } from "../../base/log.ts";
import type { ClusterRoute } from "../../mesh/ownership/clusters.ts";
import { createEnforcer } from "../session/enforcer.ts";
import { admit } from "./admit.ts";
import { createClusterGate } from "./cluster-gate.ts";
import { EgressError } from "./egress-error.ts";
import { createVisits } from "./visits.ts";

const DRAIN_MS = 5_000;
const EU = { host: "eu.example", port: 443 };

function eu(owner: string, more: Partial<ClusterRoute> = {}): ClusterRoute {
  return { name: "eu", servers: ["eu.example:443"], drainMs: DRAIN_MS, owner, ...more };
}

function setUp(clusters?: readonly ClusterRoute[]) {
  const clock = createFakeClock();
  const session = createEnforcer();
  const state = { leftMs: 1_000_000, closedFor: undefined as string | undefined };
  const home = { leftMs: () => state.leftMs - clock.monotonicMs(), authorization: "Bearer x" };
  const lock = {
    get closedFor() {
      return state.closedFor;
    },
  };
  const visits = createVisits({
    clock,
    metrics: { decided: () => undefined, open: () => undefined },
    accessLog: { pick: () => undefined },
  });
  const gate = createClusterGate({ session, home, lock, clock, log: silentLogger() });
  let version = 0;
  const enforce = (routes: readonly ClusterRoute[] | undefined, subset = "blue") =>
    session.enforce(snapshot(table([], {}), { subset, version: ++version, clusters: routes }));
  enforce(clusters);
  const open = ({ sends = true } = {}) => {
    const visit = visits.begin("CONNECT");
    try {
      const mayPass = gate.enter(EU, visit);
      if (sends) visit.noteSent();
      return { visit, mayPass, refused: undefined };
    } catch (error) {
      return { visit, mayPass: undefined, refused: error instanceof EgressError ? error.result : error };
    }
  };
  const { policies } = runningPolicies();
  const request = async () => {
    const visit = visits.begin("PATCH");
    const target = { ...EU, scheme: "https" as const, path: "/", query: "", headers: {} };
    await admit("PATCH", target, { session, policies, random: () => 0, clusters: gate }, visit);
    visit.noteSent();
    return visit;
  };
  let isDrained = false;
  const drained = () => isDrained;
  const whenDrained = () => {
    isDrained = false;
    session.whenDrained(() => {
      isDrained = true;
    });
  };
  return { clock, session, state, gate, enforce, open, request, drained, whenDrained };
}

it("a tunnel to a cluster is for the owner alone, and to another server for everyone", () => {
  expect(setUp([eu("blue")]).open().refused).toBeUndefined();
  expect(setUp([eu("green")]).open().refused).toBe("not-owned");
  expect(setUp([eu("blue", { isFenced: true })]).open().refused).toBe("moving");
  expect(setUp([eu("green", { servers: ["eu.example:6443"] })]).open()).toMatchObject({ refused: undefined, mayPass: undefined });
  expect(setUp(undefined).open()).toMatchObject({ refused: undefined, mayPass: undefined });
});

it("needs a proof that the API server at home accepts the pod, and ends when that is over", async () => {
  const world = setUp([eu("blue")]);
  world.state.leftMs = 8_000;
  const { visit, mayPass } = world.open();
  expect(mayPass?.()).toBe(true);
  await world.clock.advance(7_999);
  expect([mayPass?.(), visit.signal.aborted]).toEqual([true, false]);
  await world.clock.advance(1);
  expect([mayPass?.(), visit.signal.aborted, world.open().refused]).toEqual([false, true, "unproven"]);
});

it("a proof that is renewed keeps the tunnel", async () => {
  const world = setUp([eu("blue")]);
  world.state.leftMs = 8_000;
  const { visit } = world.open();
  for (let renewals = 0; renewals < 20; renewals++) {
    await world.clock.advance(4_000);
    world.state.leftMs = world.clock.monotonicMs() + 8_000;
  }
  expect(visit.signal.aborted).toBe(false);
});

it("a pod that loses a cluster cuts its tunnels, and acknowledges that when the server has had the time to end", async () => {
  const world = setUp([eu("blue")]);
  const { visit, mayPass } = world.open();
  world.enforce([eu("green")]);
  world.whenDrained();
  expect([visit.signal.aborted, mayPass?.(), world.drained()]).toEqual([true, false, false]);
  await world.clock.advance(DRAIN_MS - 1);
  expect(world.drained()).toBe(false);
  await world.clock.advance(1);
  expect(world.drained()).toBe(true);
});

it("a tunnel that has ended counts for as long, and one that has sent nothing does not", async () => {
  const world = setUp([eu("blue")]);
  world.open().visit.over();
  await world.clock.advance(DRAIN_MS - 1);
  world.enforce([eu("green")]);
  world.whenDrained();
  expect(world.drained()).toBe(false);
  await world.clock.advance(1);
  expect(world.drained()).toBe(true);
  world.enforce([eu("blue")]);
  world.open({ sends: false });
  world.enforce([eu("green")]);
  world.whenDrained();
  expect(world.drained()).toBe(true);
});

it("a tunnel from before its server was a cluster's is cut, also at the owner, and counts", async () => {
  for (const owner of ["blue", "green"]) {
    const world = setUp(undefined);
    const { visit } = world.open();
    world.enforce([eu(owner)]);
    world.whenDrained();
    expect([owner, visit.signal.aborted, world.drained()]).toEqual([owner, true, owner === "blue"]);
    await world.clock.advance(DRAIN_MS);
    expect(world.drained()).toBe(true);
  }
});

it("a request from before its server was a cluster's is cut too, and counts; a later one is refused", async () => {
  const world = setUp(undefined);
  const visit = await world.request();
  world.enforce([eu("green")]);
  world.whenDrained();
  expect([visit.signal.aborted, world.drained()]).toEqual([true, false]);
  await world.clock.advance(DRAIN_MS);
  expect(world.drained()).toBe(true);
  await expect(world.request()).rejects.toMatchObject({ result: "bad-request" });
});

it("closes while a lock with another name is not led by, and when the pod joins another subset", () => {
  const world = setUp([eu("blue")]);
  const { visit, mayPass } = world.open();
  world.state.closedFor = "foo---blue";
  expect([mayPass?.(), world.open().refused]).toEqual([false, "moving"]);
  world.state.closedFor = undefined;
  world.enforce([eu("green")], "green");
  expect(visit.signal.aborted).toBe(true);
});

it("other routes leave the tunnels of the owner alone", () => {
  const world = setUp([eu("blue")]);
  const { visit } = world.open();
  world.enforce([eu("blue"), eu("green", { name: "us", servers: ["us.example:443"] })]);
  expect(visit.signal.aborted).toBe(false);
});
