import { expect, test } from "vitest";
import { createFakeClock, type FakeClock } from "../../test/support/fake-clock.ts";
import { createFakeKubeClient, type FakeCall, type FakeKubeClient } from "../../test/support/fake-kube-client.ts";
import { MeshError } from "../base/errors.ts";
import { silentLogger } from "../base/log.ts";
import { LEASES } from "../kube/client/resources.ts";
import { createLeaderElector, type LeaderCallbacks } from "./leader-election.ts";

const REF = { namespace: "a", name: "lock" };

interface World {
  readonly clock: FakeClock;
  readonly client: FakeKubeClient;
  /** The identities that lead at the moment. */
  readonly leading: Set<string>;
  readonly reasons: string[];
}

function setUp(): World {
  return { clock: createFakeClock(), client: createFakeKubeClient(), leading: new Set(), reasons: [] };
}

function elector(
  { clock, client, leading, reasons }: World,
  identity: string,
  more: Partial<LeaderCallbacks> = {},
  own: Partial<FakeKubeClient> = {},
) {
  const onStartedLeading = (signal: AbortSignal) => {
    leading.add(identity);
    return new Promise<void>((resolve) => {
      const end = () => {
        leading.delete(identity);
        reasons.push((signal.reason as MeshError).code);
        resolve();
      };
      signal.addEventListener("abort", end, { once: true });
    });
  };
  return createLeaderElector({
    client: { ...client, ...own },
    ...REF,
    identity,
    clock,
    random: () => 0.5,
    log: silentLogger(),
    callbacks: { onStartedLeading, ...more },
  });
}

const never = new AbortController().signal;
const holder = ({ client }: World) => client.read(LEASES, REF)?.spec?.holderIdentity;

test("the first contender leads, and renews every two seconds", async () => {
  const world = setUp();
  const one = elector(world, "one");
  await one.start(never);
  await world.clock.flush();
  expect([one.isLeader, one.leader, holder(world)]).toEqual([true, "one", "one"]);
  await world.clock.advance(20_000);
  expect(world.client.calls.filter(({ verb }) => verb === "update")).toHaveLength(10);
  expect(world.client.read(LEASES, REF)?.spec).toMatchObject({ leaseTransitions: 0, renewTime: "2026-01-01T00:00:20.000000Z" });
  await one.stop();
});

test("a stop ends the leading work before the lease is released, and renews the lease until the work has ended", async () => {
  const world = setUp();
  const events: string[] = [];
  const { promise: drained, resolve: setDrained } = Promise.withResolvers<void>();
  const one = elector(world, "one", {
    onStartedLeading: () => drained,
    onStoppedLeading: () => events.push(`stopped, lease of ${JSON.stringify(holder(world))}`),
  });
  const two = elector(world, "two");
  await one.start(never);
  await world.clock.flush();
  await two.start(never);
  const stop = one.stop();
  await world.clock.advance(60_000);
  expect([one.isLeader, holder(world), [...world.leading]]).toEqual([true, "one", []]);
  setDrained();
  await stop;
  expect(events).toEqual(['stopped, lease of ""']);
  expect(world.client.read(LEASES, REF)?.spec?.leaseDurationSeconds).toBe(1);
  await world.clock.advance(5_000);
  expect([...world.leading]).toEqual(["two"]);
  await two.stop();
});

test("another process leads after a crashed leader's lease has expired, not before", async () => {
  const world = setUp();
  world.client.put(LEASES, { metadata: REF, spec: { holderIdentity: "dead", leaseDurationSeconds: 15, renewTime: "long ago" } });
  const heard: string[] = [];
  const one = elector(world, "one", { onNewLeader: (identity) => heard.push(identity) });
  await one.start(never);
  await world.clock.advance(14_999);
  expect(one.isLeader).toBe(false);
  await world.clock.advance(5_000);
  expect([one.isLeader, heard]).toEqual([true, ["dead", "one"]]);
  expect(world.client.read(LEASES, REF)?.spec?.leaseTransitions).toBe(1);
  await one.stop();
});

test("steps of the wall clock do not matter", async () => {
  const world = setUp();
  const one = elector(world, "one");
  const two = elector(world, "two");
  await one.start(never);
  await world.clock.flush();
  await two.start(never);
  for (const step of [3_600_000, -7_200_000]) {
    world.clock.stepWall(step);
    await world.clock.advance(30_000);
    expect([...world.leading]).toEqual(["one"]);
  }
  await Promise.all([one.stop(), two.stop()]);
});

test("a leader without a connection to the API server stops leading before another process leads", async () => {
  const world = setUp();
  let cutOff = false;
  const update: FakeKubeClient["update"] = (resource, object, options) =>
    cutOff ? Promise.reject(new MeshError("KUBE_UNREACHABLE", "cut off")) : world.client.update(resource, object, options);
  const get: FakeKubeClient["get"] = (resource, ref, options) =>
    cutOff ? Promise.reject(new MeshError("KUBE_UNREACHABLE", "cut off")) : world.client.get(resource, ref, options);
  const one = elector(world, "one", {}, { update, get });
  const two = elector(world, "two");
  await one.start(never);
  await world.clock.flush();
  await two.start(never);
  await world.clock.advance(5_000);
  cutOff = true;
  let most = 0;
  for (let ms = 0; ms < 30_000; ms += 100) {
    await world.clock.advance(100);
    most = Math.max(most, world.leading.size);
  }
  expect([most, [...world.leading], world.reasons, one.isLeader]).toEqual([1, ["two"], ["LEADERSHIP_LOST"], false]);
  cutOff = false;
  await two.stop();
  await world.clock.advance(5_000);
  expect([...world.leading]).toEqual(["one"]);
  await one.stop();
});

test("a renewal that hangs is aborted at the deadline", async () => {
  const world = setUp();
  const one = elector(world, "one");
  await one.start(never);
  await world.clock.advance(3_000);
  world.client.before = ({ signal }: FakeCall) =>
    new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason), { once: true }));
  await world.clock.advance(8_999);
  expect([...world.leading]).toEqual(["one"]);
  await world.clock.advance(1);
  expect([...world.leading]).toEqual([]);
  const stop = one.stop();
  await world.clock.advance(10_000);
  await stop;
  expect(world.clock.pending).toBe(0);
});

test("a leader that sees another holder of the lease stops at once", async () => {
  const world = setUp();
  const one = elector(world, "one");
  await one.start(never);
  await world.clock.flush();
  world.client.put(LEASES, { metadata: REF, spec: { holderIdentity: "thief", leaseDurationSeconds: 15 } });
  await world.clock.advance(4_000);
  expect([...world.leading, one.leader]).toEqual(["thief"]);
  await one.stop();
});

test("a conflict with a write of metadata does not lose the leadership", async () => {
  const world = setUp();
  const one = elector(world, "one");
  await one.start(never);
  await world.clock.flush();
  const lease = world.client.read(LEASES, REF);
  world.client.put(LEASES, { ...lease, metadata: { ...REF, labels: { l: "1" } } });
  await world.clock.advance(20_000);
  expect([one.isLeader, world.reasons]).toEqual([true, []]);
  expect(world.client.read(LEASES, REF)?.metadata.labels).toEqual({ l: "1" });
  await one.stop();
});

test("a leader whose work fails releases the lease", async () => {
  const world = setUp();
  const one = elector(world, "one", { onStartedLeading: () => Promise.reject(new Error("cannot")) });
  const two = elector(world, "two");
  await two.start(never);
  await one.start(never);
  await world.clock.flush();
  await two.stop();
  await world.clock.advance(60_000);
  expect(world.leading.size).toBe(0);
  const three = elector(world, "three");
  await three.start(never);
  await world.clock.advance(60_000);
  expect([...world.leading]).toEqual(["three"]);
  await Promise.all([one.stop(), three.stop()]);
});

test("times without a margin throw CONFIG_INVALID", () => {
  const world = setUp();
  const options = { client: world.client, ...REF, identity: "x", clock: world.clock, random: () => 0, log: silentLogger() };
  const callbacks = { onStartedLeading: () => {} };
  expect(() => createLeaderElector({ ...options, callbacks, renewDeadlineMs: 15_000 })).toThrow("leaseDuration > renewDeadline");
});

test("a leader whose work does not end does not release the lease", async () => {
  const world = setUp();
  const one = elector(world, "one", {
    onStartedLeading: (signal) =>
      new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(new MeshError("DRAIN_TIMEOUT", "draining: not done")), { once: true });
      }),
  });
  await one.start(never);
  await world.clock.flush();
  await one.stop();
  expect([one.isLeader, holder(world)]).toEqual([false, "one"]);
});
