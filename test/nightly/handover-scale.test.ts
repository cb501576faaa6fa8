// A small run of bench/handover.ts: one edit moves many namespaces. The test checks the result and the number of messages, not the time.
import { expect, it } from "vitest";
import { runHandover } from "../handover/run-handover.ts";
import { describeWithKube } from "../support/requirements.ts";

describeWithKube("fifty namespaces that move in one edit", () => {
  it("go to the new owner with few messages and requests, independent of the number of namespaces", async () => {
    const { writesByOldOwner, acknowledged, requests, seenMs, removedMs, reconciledMs } = await runHandover({
      namespaces: 50,
      foosEach: 2,
    });
    expect(writesByOldOwner).toEqual([]);
    expect(Math.max(seenMs, removedMs)).toBeLessThan(40_000);
    expect(reconciledMs).toBeGreaterThan(0);
    // Each of the two pods acknowledges a fence and a grant. A slow machine may merge fewer changes, so a few more are allowed.
    expect(acknowledged).toBeLessThan(10);
    const lists = Object.entries(requests).filter(([what]) => /^LIST (foos|configmaps)$/.test(what));
    expect(lists.reduce((sum, [, count]) => sum + count, 0)).toBeLessThan(20);
    expect(Object.keys(requests).filter((what) => /^(POST|PUT|DELETE) namespaces/.test(what))).toEqual([]);
  }, 180_000);
});
