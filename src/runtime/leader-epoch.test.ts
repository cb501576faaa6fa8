// The state that an elector shows at any moment: whether it leads, and in which epoch.
import { expect, test } from "vitest";
import { createFakeClock, type FakeClock } from "../../test/support/fake-clock.ts";
import { createFakeKubeClient, type FakeKubeClient } from "../../test/support/fake-kube-client.ts";
import type { Clock } from "../base/clock.ts";
import { silentLogger } from "../base/log.ts";
import { LEASES } from "../kube/client/resources.ts";
import { createLeaderElector } from "./leader-election.ts";

const REF = { namespace: "a", name: "lock" };
const never = new AbortController().signal;

function setUp() {
  return { clock: createFakeClock(), client: createFakeKubeClient() };
}

function elector({ clock, client }: { clock: Clock; client: FakeKubeClient }, identity: string) {
  const callbacks = {
    onStartedLeading: (signal: AbortSignal) =>
      new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true })),
  };
  return createLeaderElector({ client, ...REF, identity, clock, random: () => 0.5, log: silentLogger(), callbacks });
}

/** The clock of a process that can be stopped: time passes, and its timers run late. */
function stoppable(clock: FakeClock) {
  let isStopped = false;
  let late: (() => void)[] = [];
  const own: Clock = {
    now: clock.now,
    monotonicMs: clock.monotonicMs,
    after: (delayMs, run) => clock.after(delayMs, () => (isStopped ? void late.push(run) : run())),
  };
  return {
    own,
    stop() {
      isStopped = true;
    },
    go() {
      isStopped = false;
      for (const run of late.splice(0)) run();
      late = [];
    },
  };
}

/** "one" leads in a process that can be stopped, and "two" waits. */
async function leaderAndContender() {
  const { clock, client } = setUp();
  const process = stoppable(clock);
  const one = elector({ clock: process.own, client }, "one");
  const two = elector({ clock, client }, "two");
  await one.start(never);
  await clock.flush();
  await two.start(never);
  return { clock, process, one, two };
}

test("a process that was stopped past its deadline does not lead, even before it notices", async () => {
  const { clock, process, one, two } = await leaderAndContender();
  await clock.advance(5_000);
  expect([one.isLeader, one.epoch, two.isLeader, two.epoch]).toEqual([true, 1, false, undefined]);
  process.stop();
  await clock.advance(8_500);
  expect([one.isLeader, two.isLeader]).toEqual([true, false]);
  await clock.advance(1_000);
  expect([one.isLeader, one.epoch, two.isLeader]).toEqual([false, undefined, false]); // none leads for some time
  await clock.advance(7_000);
  expect([one.isLeader, one.epoch, two.isLeader, two.epoch]).toEqual([false, undefined, true, 2]);
  process.go();
  await clock.advance(10_000);
  expect([one.isLeader, one.leader, two.isLeader]).toEqual([false, "two", true]);
  await Promise.all([one.stop(), two.stop()]);
});

test("two processes never lead at the same time, even if one of them is stopped for long", async () => {
  for (let stoppedMs = 500; stoppedMs <= 40_000; stoppedMs += 1_700) {
    const { clock, client } = setUp();
    const process = stoppable(clock);
    const electors = [elector({ clock: process.own, client }, "one"), elector({ clock, client }, "two")];
    for (const contender of electors) {
      await contender.start(never);
      await clock.flush();
    }
    const watch = async (ms: number) => {
      for (let passed = 0; passed < ms; passed += 250) {
        await clock.advance(250);
        const epochs = electors.flatMap(({ epoch }) => (epoch === undefined ? [] : [epoch]));
        expect(epochs.length, `stopped for ${stoppedMs} ms`).toBeLessThanOrEqual(1);
      }
    };
    await watch(3_100);
    process.stop();
    await watch(stoppedMs);
    process.go();
    await watch(30_000);
    expect(electors.filter(({ isLeader }) => isLeader)).toHaveLength(1);
    await Promise.all(electors.map((contender) => contender.stop()));
  }
});

test("a leader that has missed renewals is not reported as leader", async () => {
  const { clock, process, one, two } = await leaderAndContender();
  await clock.advance(4_000);
  expect(two.leader).toBe("one");
  process.stop();
  await clock.advance(5_000);
  expect(two.leader).toBe("one");
  await clock.advance(2_500);
  expect([two.leader, two.isLeader]).toEqual(["", false]);
  await clock.advance(10_000);
  expect([two.leader, two.isLeader]).toEqual(["two", true]);
  process.go();
  await Promise.all([one.stop(), two.stop()]);
});

test("the next contender takes over within two seconds of the lease's end", async () => {
  const { clock, process, one, two } = await leaderAndContender();
  await clock.advance(6_100);
  process.stop(); // as kill -9: the last renewal was at 6,000
  await clock.advance(16_900);
  expect(two.isLeader).toBe(true);
  process.go();
  await Promise.all([one.stop(), two.stop()]);
});

test("epochs grow with every leader, even if the lease was deleted and the next leader has never seen it", async () => {
  const { clock, client } = setUp();
  const epochs: (number | undefined)[] = [];
  for (const identity of ["one", "two", "one", "three", "four"]) {
    if (identity === "three") client.remove(LEASES, REF);
    const contender = elector({ clock, client }, identity);
    await contender.start(never);
    await clock.advance(3_000);
    epochs.push(contender.epoch);
    await contender.stop();
  }
  expect(epochs.slice(0, 3)).toEqual([1, 2, 3]);
  expect(epochs).toEqual(epochs.toSorted((a = 0, b = 0) => a - b));
  expect(new Set(epochs).size).toBe(5);
});

test("after a deletion of the lease the next leader has a higher epoch, even while the former leader still runs", async () => {
  const { clock, client } = setUp();
  let isCut = false;
  const cut = <T>(call: () => Promise<T>) => (isCut ? Promise.reject(new Error("cut off")) : call());
  const cutOff: FakeKubeClient = {
    ...client,
    get: (...args: Parameters<typeof client.get>) => cut(() => client.get(...args)),
    update: (...args: Parameters<typeof client.update>) => cut(() => client.update(...args)),
  } as FakeKubeClient;
  const one = elector({ clock, client: cutOff }, "one");
  const two = elector({ clock, client }, "two");
  await one.start(never);
  await clock.flush();
  await two.start(never);
  await clock.advance(3_000);
  expect([one.epoch, two.epoch]).toEqual([1, undefined]);
  isCut = true;
  client.remove(LEASES, REF);
  await clock.advance(1_500);
  const { epoch = 0 } = two;
  expect([one.epoch, epoch > 1]).toEqual([1, true]);
  await clock.advance(6_000);
  expect(two.epoch).toBe(epoch); // renewals do not raise it
  await Promise.all([one.stop(), two.stop()]);
});
