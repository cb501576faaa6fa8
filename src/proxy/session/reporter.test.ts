import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import type { ReportMessage } from "../../mesh/contract/messages.ts";
import { createReporter } from "./reporter.ts";

function setup() {
  const clock = createFakeClock();
  const sent: { readonly atMs: number; readonly report: ReportMessage }[] = [];
  const reporter = createReporter(clock, (report) => sent.push({ atMs: clock.monotonicMs(), report }));
  const tellHeld = (heldNamespaces: number, drainingWrites = 0) => reporter.report("backlog", { heldNamespaces, drainingWrites });
  const held = () => sent.map(({ atMs, report }) => [atMs, "backlog" in report && report.backlog.heldNamespaces]);
  return { clock, sent, reporter, tellHeld, held };
}

it("says nothing about what has not changed", async () => {
  const { clock, sent, reporter, tellHeld } = setup();
  reporter.report("leader", false);
  reporter.report("lock", null);
  tellHeld(0);
  await clock.advance(1_000);
  expect(sent).toEqual([]);
});

it("tells a count's step from and to zero at once, and its other changes once in 200 ms, the last one always", async () => {
  const { clock, tellHeld, held } = setup();
  tellHeld(1);
  for (let count = 2; count < 50; count++) {
    await clock.advance(10);
    tellHeld(count);
  }
  await clock.advance(5);
  tellHeld(0);
  await clock.advance(1_000);
  expect(held()).toEqual([
    [0, 1],
    [200, 20],
    [400, 40],
    [485, 0],
  ]);
});

it("does not let a count that flickers flood the manager", async () => {
  const { clock, sent, tellHeld } = setup();
  for (let ms = 0; ms < 2_000; ms++) {
    tellHeld(ms % 2, ms % 3);
    await clock.advance(1);
  }
  tellHeld(7, 9);
  await clock.advance(400);
  expect(sent.length).toBeLessThan(25);
  expect(sent.at(-1)?.report).toEqual({ backlog: { heldNamespaces: 7, drainingWrites: 9 } });
});

it("tells who leads and what the lock may do at once, however much was said just now: each kind is paced by itself", async () => {
  const { clock, sent, reporter, tellHeld } = setup();
  const lock = { lockName: "lock", resource: "leases", deniedVerbs: [], reason: "" };
  tellHeld(3);
  tellHeld(4);
  reporter.report("leader", true);
  reporter.report("lock", lock);
  reporter.report("lock", null);
  expect(sent.map(({ report }) => report)).toEqual([
    { backlog: { heldNamespaces: 3, drainingWrites: 0 } },
    { leader: true },
    { lock },
    { lock: { lockName: "", resource: "", deniedVerbs: [], reason: "" } },
  ]);
  await clock.advance(1_000);
  expect(sent.slice(4).map(({ report }) => report)).toEqual([{ backlog: { heldNamespaces: 4, drainingWrites: 0 } }]);
});

it("has a report of every kind for the next stream: the initial values at first, which replace those of the process before", () => {
  const { reporter, tellHeld } = setup();
  const lock = { lockName: "", resource: "", deniedVerbs: [], reason: "" };
  const unnamedLock = { lockName: "", resource: "" };
  const backlog = { heldNamespaces: 0, drainingWrites: 0 };
  const policies = { digest: "", rules: [] };
  const shares = { version: 0, shares: [] };
  expect(reporter.all).toEqual([
    { leader: false },
    { lock },
    { backlog },
    { unnamedLock },
    { policies },
    { webhookProblem: "" },
    { clusters: { unreachable: [] } },
    { shares },
  ]);
  reporter.report("leader", true);
  tellHeld(2);
  tellHeld(3); // waits
  expect(reporter.all).toEqual([
    { leader: true },
    { lock },
    { backlog: { ...backlog, heldNamespaces: 2 } },
    { unnamedLock },
    { policies },
    { webhookProblem: "" },
    { clusters: { unreachable: [] } },
    { shares },
  ]);
});

it("leaves no timer behind", () => {
  const { clock, reporter, tellHeld } = setup();
  tellHeld(3);
  tellHeld(4);
  expect(clock.pending).toBe(1);
  reporter.stop();
  expect(clock.pending).toBe(0);
});
