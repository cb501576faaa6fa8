import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { parseRequestInfo } from "../../kube/request-info.ts";
import { createInFlight } from "./in-flight.ts";

const PLAIN = { method: "GET", target: "/api/v1/pods", headers: {}, body: null };

function setup() {
  const clock = createFakeClock();
  const inFlight = createInFlight(clock);
  const drained = { done: false };
  const drain = (ms: number) => {
    void inFlight.drain(ms).then(() => {
      drained.done = true;
    });
  };
  return { clock, inFlight, drained, drain };
}

describe("in flight", () => {
  it("fires the signal of a call whose client is gone, not of one that has its answer", () => {
    const { inFlight } = setup();
    const [answered, gone] = [inFlight.begin(PLAIN), inFlight.begin(PLAIN)];
    answered.end(false);
    gone.end(true);
    expect([answered.call.signal.aborted, gone.call.signal.aborted]).toEqual([false, true]);
  });

  it("drains at once when nothing runs", async () => {
    const { clock, drained, drain } = setup();
    drain(1_000);
    await clock.flush();
    expect([drained.done, clock.pending]).toEqual([true, 0]);
  });

  it("waits for a call with an end, not for a watch, and tells the watch at the very end", async () => {
    const { clock, inFlight, drained, drain } = setup();
    const [get, watch] = [inFlight.begin(PLAIN), inFlight.begin(PLAIN)];
    watch.call.record.info = parseRequestInfo("GET", "/api/v1/pods?watch=1");
    drain(1_000);
    await clock.flush();
    expect([drained.done, inFlight.draining]).toEqual([false, true]);
    get.end(false);
    await clock.flush();
    expect([drained.done, watch.call.signal.aborted]).toEqual([true, false]);
    inFlight.abortAll();
    expect(watch.call.signal.aborted).toBe(true);
  });

  it("ends watches one after the other over a time, and waits until they are over", async () => {
    const { clock, inFlight } = setup();
    const watches = Array.from({ length: 4 }, () => inFlight.begin(PLAIN));
    for (const { call } of watches) {
      call.record.info = parseRequestInfo("GET", "/api/v1/pods?watch=1");
      call.signal.addEventListener("abort", () => watches.find((one) => one.call === call)?.end(false));
    }
    const get = inFlight.begin(PLAIN);
    let over = false;
    void inFlight.endLongRunning(1_000).then(() => {
      over = true;
    });
    const aborted = () => watches.filter(({ call }) => call.signal.aborted).length;
    const seen: number[] = [];
    for (let step = 0; step < 4; step++) {
      seen.push(aborted());
      await clock.advance(250);
    }
    expect([seen, aborted(), over]).toEqual([[0, 1, 2, 3], 4, true]);
    expect([get.call.signal.aborted, clock.pending]).toEqual([false, 0]);
  });

  it("has no watches to end: done at once", async () => {
    const { clock, inFlight } = setup();
    inFlight.begin(PLAIN);
    await inFlight.endLongRunning(1_000);
    expect(clock.pending).toBe(0);
  });

  it("fires the signal of a call whose time is up, and forgets the time of one that ended before", async () => {
    const { clock, inFlight } = setup();
    const [late, done, gone] = [inFlight.begin(PLAIN), inFlight.begin(PLAIN), inFlight.begin(PLAIN)];
    late.endAfter(1_000);
    done.endAfter(1_000);
    done.end(false);
    gone.end(true);
    gone.endAfter(1_000);
    expect(clock.pending).toBe(1);
    await clock.advance(1_000);
    expect([late.call.signal.aborted, done.call.signal.aborted]).toEqual([true, false]);
  });

  it("waits no longer than it may", async () => {
    const { clock, inFlight, drained, drain } = setup();
    inFlight.begin(PLAIN);
    drain(1_000);
    await clock.advance(1_000);
    expect(drained.done).toBe(true);
  });
});
