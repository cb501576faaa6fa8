// The routes of a proxy with a disk that fails or hangs, a lock gate that changes meanwhile, and defects of the proxy itself.
import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { startRouteHandler } from "../../../test/support/route-handler.ts";
import { routes } from "../../../test/support/test-routes.ts";
import { wholeUpdate } from "../../../test/support/updates.ts";
import { routeDigest } from "../../mesh/contract/route-type.ts";
import type { Snapshot } from "../../mesh/ownership/snapshot.ts";

const NAMES = Array.from({ length: 20 }, (_, index) => `n${index}`);
const of = (version: number) => routes(version, { blue: ["a"], defaultSubset: NAMES }, { digest: `digest-${version}` });

function setup(stored?: Snapshot) {
  const clock = createFakeClock();
  const saves: { readonly atMs: number; readonly digest: string; readonly end: () => void }[] = [];
  const disk: { state: "works" | "fails" | "hangs" } = { state: "works" };
  const acks: string[] = [];
  const file = {
    load: async () => stored,
    save: (snapshot: Snapshot) => {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      saves.push({ atMs: clock.monotonicMs(), digest: snapshot.digest, end: resolve });
      if (disk.state === "works") resolve();
      if (disk.state === "fails") reject(new Error("EROFS"));
      return promise;
    },
  };
  const { enforcer, routeHandler: handler, stop } = startRouteHandler(file, clock);
  const take = (snapshot: Snapshot, nonce: number) =>
    handler.take(wholeUpdate(snapshot, nonce), {
      ack: () => void acks.push(`ack ${nonce}`),
      nack: () => undefined,
      needsWhole: () => undefined,
    });
  return { clock, enforcer, handler, take, saves, acks, disk, stop };
}

it("a disk that fails is tried once a second after the last update, and not after the end of the process", async () => {
  const { clock, take, saves, disk, acks, stop } = setup();
  disk.state = "fails";
  for (let version = 1; version <= 50; version++) {
    take(of(version), version);
    await clock.advance(117);
  }
  await clock.advance(5_000);
  const before = saves.length;
  await clock.advance(10_000);
  expect(saves.length - before).toBe(10);
  disk.state = "works";
  await clock.advance(2_000);
  expect(acks).toEqual(["ack 50"]);
  disk.state = "fails";
  take(of(51), 51);
  await clock.flush();
  stop.abort();
  expect(clock.pending).toBe(0);
});

it("a lock gate that changes while the same routes settle is saved at once", async () => {
  const stored = { ...of(1), digest: routeDigest(of(1)) };
  const { clock, handler, take, saves } = setup(stored);
  await handler.restore(false, true);
  take(stored, 1);
  await clock.flush();
  handler.storeAgain();
  await clock.flush();
  expect(saves.map(({ atMs, digest }) => [atMs, digest])).toEqual([[0, stored.digest]]);
});

it("a lock gate that changes with every save delays no acknowledgement", async () => {
  const { clock, handler, take, saves, acks, disk } = setup();
  disk.state = "hangs";
  take(of(1), 1);
  await clock.flush();
  handler.storeAgain();
  saves[0]?.end();
  await clock.flush();
  expect([acks, saves.length]).toEqual([["ack 1"], 2]);
});

it("a thousand updates while the disk hangs leave one save and no timers, and the last is acknowledged", async () => {
  const { clock, take, saves, disk, acks } = setup();
  disk.state = "hangs";
  for (let version = 1; version <= 1_000; version++) take(of(version), version);
  await clock.flush();
  expect([saves.length, clock.pending]).toEqual([1, 0]);
  disk.state = "works";
  saves[0]?.end();
  await clock.advance(3_000);
  expect(acks).toEqual(["ack 1000"]);
});

it("a gate that changes and a write that ends while routes come into force disturb nothing", async () => {
  const { clock, enforcer, handler, take, saves, acks } = setup();
  take(of(1), 1);
  await clock.flush();
  const end = enforcer.beginWrite("a", { group: "", resource: "pods" });
  enforcer.onChange(() => {
    handler.storeAgain();
    end();
  });
  take(routes(2, { blue: [], defaultSubset: NAMES, fenced: ["a"] }, { digest: "digest-2" }), 2);
  await clock.flush();
  expect([acks, saves.map(({ digest }) => digest)]).toEqual([
    ["ack 1", "ack 2"],
    ["digest-1", "digest-2"],
  ]);
});

it("routes that the enforcer did not take are never acknowledged", async () => {
  const { clock, enforcer, take, acks } = setup();
  const { enforce } = enforcer;
  const end = enforcer.beginWrite("a");
  take(of(1), 1);
  await clock.flush();
  enforcer.enforce = () => {
    throw new Error("a defect of the enforcer");
  };
  expect(() => take(of(2), 2)).toThrow("a defect of the enforcer");
  enforcer.enforce = enforce;
  expect(end).toThrow("a defect of the enforcer");
  await clock.advance(1_000);
  expect([enforcer.current?.snapshot.version, acks]).toEqual([1, []]);
});
