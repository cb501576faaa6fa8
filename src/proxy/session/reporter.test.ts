import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import type { ReportMessage } from "../../wire/messages.ts";
import { createReporter } from "./reporter.ts";

function setup() {
  const clock = createFakeClock();
  const sent: { readonly atMs: number; readonly report: ReportMessage }[] = [];
  const reporter = createReporter(clock, (report) => sent.push({ atMs: clock.monotonicMs(), report }));
  return { clock, sent, reporter, held: () => sent.map(({ atMs, report }) => [atMs, report.held]) };
}

it("says nothing about what has not changed", async () => {
  const { clock, sent, reporter } = setup();
  reporter.tell({ leader: false, held: 0 });
  reporter.tell({ drainingWrites: 0 });
  await clock.advance(1_000);
  expect(sent).toEqual([]);
});

it("tells a count's step from and to zero at once, and its other changes once in 200 ms, the last one always", async () => {
  const { clock, reporter, held } = setup();
  reporter.tell({ held: 1 });
  for (let count = 2; count < 50; count++) {
    await clock.advance(10);
    reporter.tell({ held: count });
  }
  await clock.advance(5);
  reporter.tell({ held: 0 });
  await clock.advance(1_000);
  expect(held()).toEqual([
    [0, 1],
    [200, 20],
    [400, 40],
    [485, 0],
  ]);
});

it("does not let a count that flickers flood the manager", async () => {
  const { clock, sent, reporter } = setup();
  for (let ms = 0; ms < 2_000; ms++) {
    reporter.tell({ held: ms % 2, drainingWrites: ms % 3 });
    await clock.advance(1);
  }
  reporter.tell({ held: 7, drainingWrites: 9 });
  await clock.advance(400);
  expect(sent.length).toBeLessThan(25);
  expect(sent.at(-1)?.report).toMatchObject({ held: 7, drainingWrites: 9 });
});

it("tells who leads and what the lock may do at once, however much was said just now", async () => {
  const { clock, sent, reporter } = setup();
  const lock = { lockName: "lock", resource: "leases", deniedVerbs: [], reason: "" };
  reporter.tell({ held: 3 });
  reporter.tell({ held: 4 });
  reporter.tell({ leader: true });
  reporter.tell({ lock });
  expect(sent.map(({ report }) => report)).toEqual([
    { leader: false, lock: null, held: 3, drainingWrites: 0 },
    { leader: true, lock: null, held: 4, drainingWrites: 0 },
    { leader: true, lock, held: 4, drainingWrites: 0 },
  ]);
  await clock.advance(1_000);
  expect(sent).toHaveLength(3);
});

it("leaves no timer behind", () => {
  const { clock, reporter } = setup();
  reporter.tell({ held: 3 });
  reporter.tell({ held: 4 });
  expect(clock.pending).toBe(1);
  reporter.stop();
  expect(clock.pending).toBe(0);
});
