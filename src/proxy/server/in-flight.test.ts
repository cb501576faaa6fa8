import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import type { CallNotes } from "../http/handler.ts";
import { createInFlight, type InFlight } from "./in-flight.ts";

const PLAIN = { method: "GET", target: "/api/v1/pods", headers: {}, body: null };

const begin = (inFlight: InFlight<CallNotes>) => inFlight.begin({ ...PLAIN, record: {} });

function setup() {
  const clock = createFakeClock();
  const inFlight = createInFlight<CallNotes>(clock);
  const drained = { done: false };
  const drain = (ms: number) => {
    inFlight.beginDrain();
    void inFlight.untilOnlyEndless(ms).then(() => {
      drained.done = true;
    });
  };
  return { clock, inFlight, drained, drain };
}

describe("in flight", () => {
  it("fires the signal of every call that ends, and says whether its client is gone", () => {
    const { inFlight } = setup();
    const [answered, another, gone] = [begin(inFlight), begin(inFlight), begin(inFlight)];
    let fired = 0;
    answered.call.signal.addEventListener("abort", () => fired++);
    answered.end(false);
    another.end(false);
    gone.end(true);
    expect([fired, answered.call.signal.aborted, gone.call.signal.aborted]).toEqual([1, true, true]);
    expect([String(answered.call.signal.reason), String(gone.call.signal.reason)]).toEqual([
      "MeshError: serving a request: it is over",
      "MeshError: serving a request: the client is gone",
    ]);
    expect(another.call.signal.reason).toBe(answered.call.signal.reason); // no error with a stack for each request
  });

  it("drains at once when nothing runs", async () => {
    const { clock, drained, drain } = setup();
    drain(1_000);
    await clock.flush();
    expect([drained.done, clock.pending]).toEqual([true, 0]);
  });

  it("waits for a call with an end, not for a watch, and tells the watch at the very end", async () => {
    const { clock, inFlight, drained, drain } = setup();
    const [get, watch] = [begin(inFlight), begin(inFlight)];
    watch.call.record.isLongRunning = true;
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
    const watches = Array.from({ length: 4 }, () => begin(inFlight));
    for (const { call } of watches) {
      call.record.isLongRunning = true;
      call.signal.addEventListener("abort", () => watches.find((one) => one.call === call)?.end(false));
    }
    const get = begin(inFlight);
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
    begin(inFlight);
    await inFlight.endLongRunning(1_000);
    expect(clock.pending).toBe(0);
  });

  it("fires the signal of a call whose time is up, and forgets the time of one that ended before", async () => {
    const { clock, inFlight } = setup();
    const [late, done, gone] = [begin(inFlight), begin(inFlight), begin(inFlight)];
    late.endAfter(1_000);
    done.endAfter(2_000);
    done.end(false);
    gone.end(true);
    gone.endAfter(1_000);
    expect(clock.pending).toBe(1);
    await clock.advance(1_000);
    expect([late, done].map(({ call }) => String(call.signal.reason))).toEqual([
      "MeshError: serving a request: its time is up",
      "MeshError: serving a request: it is over",
    ]);
  });

  it("waits no longer than it may", async () => {
    const { clock, inFlight, drained, drain } = setup();
    begin(inFlight);
    drain(1_000);
    await clock.advance(1_000);
    expect(drained.done).toBe(true);
  });
});
