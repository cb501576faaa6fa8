// Many namespaces handed over in one edit: the small form of bench/handover.ts, for what it does and not for how long it takes.
import { expect, it } from "vitest";
import { runHandover } from "../support/handover/run-handover.ts";
import { describeWithKube } from "../support/requirements.ts";

describeWithKube("fifty namespaces handed over in one edit", () => {
  it("go to the new owner at once and whole, for a number of messages and requests that does not depend on theirs", async () => {
    const { strangers, acknowledged, requests, seenMs, leftMs, reconciledMs } = await runHandover({
      namespaces: 50,
      foosEach: 2,
    });
    expect(strangers).toEqual([]);
    expect(Math.max(seenMs, leftMs)).toBeLessThan(40_000);
    expect(reconciledMs).toBeGreaterThan(0);
    // Two pods: fence and acknowledge, grant and acknowledge, and a little for what a slow machine does not merge.
    expect(acknowledged).toBeLessThan(10);
    const lists = Object.entries(requests).filter(([what]) => /^LIST (foos|configmaps)$/.test(what));
    expect(lists.reduce((sum, [, count]) => sum + count, 0)).toBeLessThan(20);
    expect(Object.keys(requests).filter((what) => /^(POST|PUT|DELETE) namespaces/.test(what))).toEqual([]);
  }, 180_000);
});
