import { expect, test } from "vitest";
import { formatMicroTime, heldSpec, mayTake, observe, releasedSpec } from "./lease-record.ts";

const lease = (holderIdentity: string, renewTime = "t1") => ({
  metadata: { name: "lock" },
  spec: { holderIdentity, leaseDurationSeconds: 15, renewTime, leaseTransitions: 3 },
});

test("a lease of another holder may be taken once it was seen unchanged for its duration", () => {
  const first = observe(undefined, lease("b"), 1_000);
  expect(mayTake(first, "a", 1_000)).toBe(false);
  const again = observe(first, lease("b"), 9_000);
  expect([mayTake(again, "a", 15_999), mayTake(again, "a", 16_000)]).toEqual([false, true]);
  const renewed = observe(again, lease("b", "t2"), 15_000);
  expect([mayTake(renewed, "a", 16_000), mayTake(renewed, "a", 30_000)]).toEqual([false, true]);
});

test("a lease without a holder, or of this process, may be taken at once", () => {
  expect(mayTake(observe(undefined, lease(""), 0), "a", 0)).toBe(true);
  expect(mayTake(observe(undefined, lease("a"), 0), "a", 0)).toBe(true);
  expect(mayTake(observe(undefined, { metadata: {} }, 0), "a", 0)).toBe(true);
});

test("transitions count changes of the holder; a renewal keeps acquireTime", () => {
  const taken = heldSpec(lease("b").spec, "a", 15_000, 0);
  expect(taken).toMatchObject({
    holderIdentity: "a",
    leaseDurationSeconds: 15,
    leaseTransitions: 4,
    acquireTime: "1970-01-01T00:00:00.000000Z",
  });
  const renewed = heldSpec(taken, "a", 15_000, 2_500);
  expect(renewed).toMatchObject({
    leaseTransitions: 4,
    acquireTime: taken.acquireTime,
    renewTime: "1970-01-01T00:00:02.500000Z",
  });
});

test("a new lease begins above every earlier lease of its name, and leaves room for later leaders even if the clock is wrong", () => {
  const at = (time: string) => heldSpec(undefined, "a", 15_000, Date.parse(time)).leaseTransitions;
  expect([at("1970-01-01"), at("2026-01-02"), at("2300-01-01")]).toEqual([0, 86_400, 2 ** 30]);
});

test("a released lease has no holder and a duration of one second", () => {
  expect(releasedSpec(lease("a").spec, 0)).toMatchObject({ holderIdentity: "", leaseDurationSeconds: 1, leaseTransitions: 3 });
  expect(formatMicroTime(1_234)).toBe("1970-01-01T00:00:01.234000Z");
});
