import fc from "fast-check";
import { expect, it } from "vitest";
import { policyRequest } from "../../../test/support/policies.ts";
import { createSharedBucket, WANT_MS } from "./shared-bucket.ts";

const REQUEST = policyRequest("DELETE /api/v1/namespaces/a/pods/p");
const SPEC = { perSecond: 10, burst: 100 };

function setUp(spec = SPEC) {
  const wanted: number[] = [];
  let nowMs = 0;
  const bucket = createSharedBucket(spec, 0, () => void wanted.push(nowMs));
  const send = (atMs: number): boolean => {
    nowMs = atMs;
    const decision = bucket.ask(REQUEST, atMs);
    if (decision.kind === "pass") bucket.charge(REQUEST, atMs);
    else bucket.refuse?.(REQUEST, atMs);
    return decision.kind === "pass";
  };
  const count = (atMs: number) => {
    let passed = 0;
    while (send(atMs)) passed++;
    return passed;
  };
  return { bucket, wanted, send, count };
}

it("refuses everything until the manager has dealt a share, and the first share is full", () => {
  const { bucket, send, count } = setUp();
  expect(send(0)).toBe(false);
  bucket.setShare(250_000, 10);
  expect(count(10)).toBe(25);
  expect(count(1_010)).toBe(2); // a quarter of ten in a second
});

it("a larger share brings no tokens, but more of them in time", () => {
  const { bucket, count } = setUp();
  bucket.setShare(100_000, 0);
  expect(count(0)).toBe(10);
  bucket.setShare(1_000_000, 0);
  expect(count(0)).toBe(0);
  expect(count(2_000)).toBe(20);
});

it("a smaller share takes the tokens that it has no room for", () => {
  const { bucket, count } = setUp();
  bucket.setShare(1_000_000, 0);
  bucket.setShare(100_000, 0);
  expect(count(0)).toBe(10);
});

it("a share of less than one token lets one request through at a time", () => {
  const { bucket, count } = setUp({ perSecond: 1, burst: 5 });
  bucket.setShare(20_000, 0);
  expect(count(0)).toBe(1);
  expect(count(49_000)).toBe(0);
  expect(count(50_000)).toBe(1);
});

it("wants more when it is refused or more than half used, and not before", () => {
  const { bucket, send, wanted } = setUp({ perSecond: 0, burst: 4 });
  bucket.setShare(1_000_000, 0);
  expect([send(1), send(2)]).toEqual([true, true]);
  expect([bucket.wantsMore(2), wanted]).toEqual([false, []]);
  expect([send(3), send(4), send(5)]).toEqual([true, true, false]);
  expect([bucket.wantsMore(5 + WANT_MS - 1), bucket.wantsMore(5 + WANT_MS), wanted]).toEqual([true, false, [3]]);
});

it("pods whose shares never exceed the whole let no more through than it, however the shares change", () => {
  const deals = fc.array(
    fc.record({ waitMs: fc.nat({ max: 3_000 }), part: fc.nat({ max: 1_000_000 }), which: fc.nat({ max: 1 }) }),
  );
  fc.assert(
    fc.property(deals, (all) => {
      const [a, b] = [setUp(), setUp()];
      a.bucket.setShare(500_000, 0);
      b.bucket.setShare(500_000, 0);
      let [nowMs, passed] = [0, 0];
      for (const { waitMs, part, which } of all) {
        nowMs += waitMs;
        // First the smaller share, then the larger one, as the manager deals them.
        const shares = [part, 1_000_000 - part];
        const order = (shares[0] ?? 0) < a.bucket.figures(nowMs).shareInMillionths ? [a, b] : [b, a];
        for (const pod of order) pod.bucket.setShare((pod === a ? shares[0] : shares[1]) ?? 0, nowMs);
        passed += (which === 0 ? a : b).count(nowMs);
        expect(passed).toBeLessThanOrEqual(SPEC.burst + (SPEC.perSecond * nowMs) / 1_000 + 2);
      }
    }),
  );
});

it("an edit leaves the share and its tokens, as far as there is room, and is none of another kind (D10)", () => {
  const { bucket, count, send } = setUp();
  bucket.setShare(250_000, 0);
  for (let at = 0; at < 20; at++) send(0);
  expect(bucket.edit({ kind: "bucket", perSecond: 0, burst: 1_000, per: "Policy" }, 0)).toBe(true);
  expect([bucket.figures(0).shareInMillionths, count(0)]).toEqual([250_000, 5]);
  expect(bucket.edit({ kind: "bucket", perSecond: 0, burst: 1_000 }, 0)).toBe(false);
});
