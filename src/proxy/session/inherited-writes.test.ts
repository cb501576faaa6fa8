import { describe, expect, it } from "vitest";
import { startRouteHandler } from "../../../test/support/route-handler.ts";
import { routes } from "../../../test/support/test-routes.ts";
import { wholeUpdate } from "../../../test/support/updates.ts";
import { routeDigest } from "../../mesh/contract/route-type.ts";
import { INHERITED_WRITES_MS } from "../../mesh/link/proxy-routes.ts";
import type { Snapshot } from "../../mesh/ownership/snapshot.ts";

const defaultSubset = Array.from({ length: 20 }, (_, index) => `n${index}`);
const stored = routes(1, { blue: ["a", "b"], defaultSubset });
const loss = routes(2, { blue: ["b"], defaultSubset, fenced: ["a"] });
const gain = routes(2, { blue: ["a", "b", "new"], defaultSubset });

/** The handler after a start with a stored snapshot. */
async function start({ endedCleanly = false, hasStored = true, hasPromised = false } = {}) {
  const saved: string[] = [];
  const acks: number[] = [];
  const { clock, enforcer, routeHandler, stop } = startRouteHandler({
    load: async () => (hasStored ? stored : undefined),
    save: async (snapshot) => void saved.push(snapshot.digest),
  });
  await routeHandler.restore(endedCleanly, hasPromised);
  const take = async (snapshot: Snapshot, nonce: number) => {
    const ignore = () => undefined;
    routeHandler.take(wholeUpdate(snapshot, nonce), { ack: () => void acks.push(nonce), nack: ignore, needsWhole: ignore });
    await clock.flush();
  };
  return { clock, enforcer, routeHandler, saved, acks, stop, take };
}

describe("after a process that did not end cleanly", () => {
  it("a loss is enforced at once, and acknowledged only when its last writes are over", async () => {
    const { clock, enforcer, saved, acks, take } = await start();
    await take(loss, 1);
    expect(enforcer.current?.view("", "pods").ownershipOf("a")).toBe("moving");
    await clock.advance(INHERITED_WRITES_MS - 1);
    expect(acks).toEqual([]);
    await clock.advance(1);
    expect([acks, saved]).toEqual([[1], ["digest-2"]]);
  });

  it("a registration tells the stored snapshot as held meanwhile, and so would the next process: nothing newer is stored", async () => {
    const { clock, routeHandler, saved, take } = await start();
    await take(loss, 1);
    await clock.advance(INHERITED_WRITES_MS - 1);
    expect(routeHandler.claims.acknowledged).toEqual({ ...stored, digest: routeDigest(stored) });
    expect(routeHandler.claims.inDoubt.map(({ digest }) => digest)).toEqual(["digest-2"]);
    expect(saved).toEqual([]);
    await clock.advance(1);
    expect([routeHandler.claims.acknowledged?.digest, routeHandler.claims.inDoubt]).toEqual(["digest-2", []]);
  });

  it("what was stored is not acknowledged sooner: more than that may have been let through, which an ACK would deny", async () => {
    for (const next of [stored, gain]) {
      const { clock, acks, routeHandler, take } = await start();
      await take(next, 1);
      await clock.advance(INHERITED_WRITES_MS - 1);
      expect([acks, routeHandler.claims.mayHoldMore]).toEqual([[], true]);
      await clock.advance(1);
      expect([acks, routeHandler.claims.mayHoldMore]).toEqual([[1], false]);
    }
  });

  it("a process that finds nothing stored waits as well, if one before it has followed a leader", async () => {
    const { clock, acks, routeHandler, take } = await start({ hasStored: false, hasPromised: true });
    expect(routeHandler.claims).toEqual({ acknowledged: undefined, inDoubt: [], mayHoldMore: true });
    await take(stored, 1);
    await clock.advance(INHERITED_WRITES_MS - 1);
    expect(acks).toEqual([]);
    await clock.advance(1);
    expect(acks).toEqual([1]);
  });

  it("only the newest of those that wait is acknowledged", async () => {
    const { clock, acks, take } = await start();
    await take(loss, 1);
    await clock.advance(4_000);
    await take({ ...loss, version: 3, digest: "digest-3" }, 2);
    await clock.advance(INHERITED_WRITES_MS - 4_000);
    expect(acks).toEqual([2]);
  });

  it("a write of this process is waited for as ever, and the wait is not begun anew after it", async () => {
    const { clock, enforcer, acks, take } = await start();
    const done = enforcer.beginWrite("a", { group: "", resource: "pods" });
    await take(loss, 1);
    await clock.advance(INHERITED_WRITES_MS);
    expect(acks).toEqual([]);
    done();
    await clock.flush();
    expect(acks).toEqual([1]);
  });

  it("once they are over, nothing waits any more", async () => {
    const { clock, acks, take, routeHandler } = await start();
    expect(routeHandler.isSettled).toBe(false);
    await clock.advance(INHERITED_WRITES_MS);
    expect(routeHandler.isSettled).toBe(true);
    await take(loss, 1);
    expect(acks).toEqual([1]);
  });

  it("a process that ends while it waits stores and acknowledges nothing", async () => {
    const { clock, acks, saved, stop, take } = await start();
    await take(loss, 1);
    stop.abort();
    await clock.advance(INHERITED_WRITES_MS);
    expect([acks, saved, clock.pending]).toEqual([[], [], 0]);
  });
});

it("after a clean end, or where nothing is stored, nothing waits", async () => {
  for (const options of [{ endedCleanly: true }, { hasStored: false }]) {
    const { acks, take, routeHandler } = await start(options);
    expect(routeHandler.isSettled).toBe(true);
    await take(loss, 1);
    expect(acks).toEqual([1]);
  }
});
