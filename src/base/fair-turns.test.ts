import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../test/support/fake-clock.ts";
import { createFairTurns } from "./fair-turns.ts";

function setUp(lightMs = 0) {
  const fake = createFakeClock();
  const done: string[] = [];
  let workedMs = 0;
  const clock = { after: fake.after.bind(fake), monotonicMs: () => fake.monotonicMs() + workedMs };
  const turns = createFairTurns({ clock, lightMs, nextTurn: (run) => void fake.after(0, run) });
  /** Work that takes so long. */
  const run = (client: string, name: string, ms: number) =>
    turns.run(client, () => {
      workedMs += ms;
      done.push(name);
      return name;
    });
  const spend = (ms: number) => {
    workedMs += ms;
  };
  return { advance: (ms: number) => fake.advance(ms), done, run, spend, turns, workedMs: () => workedMs };
}

describe("turns", () => {
  it("work runs at once if nobody else works", async () => {
    const { run, done } = setUp();
    const result = run("a", "a1", 50);
    expect(done).toEqual(["a1"]);
    expect(await result).toBe("a1");
  });

  it("clients with much work delay one with little by one piece", async () => {
    const { advance, run, done } = setUp(100);
    for (let at = 1; at <= 50; at++) for (const client of ["s", "t"]) void run(client, `${client}${at}`, 60);
    await advance(0);
    await advance(200);
    const before = done.length;
    for (let at = 1; at <= 3; at++) void run("honest", `h${at}`, 1);
    await advance(0);
    await advance(0);
    await advance(0);
    expect(done.slice(before, before + 3)).toEqual(["h1", "h2", "h3"]);
  });

  it("those who take much leave the loop free for half of the time", async () => {
    const { advance, run, workedMs } = setUp(100);
    for (let at = 1; at <= 100; at++) void run("s", `s${at}`, 20);
    await advance(100);
    const startMs = workedMs();
    for (let ms = 0; ms < 400; ms++) await advance(1);
    expect(workedMs() - startMs).toBeGreaterThan(0);
    expect(workedMs() - startMs).toBeLessThanOrEqual(440);
  });

  it("what goes on in the same turn counts too", async () => {
    const { advance, run, spend, turns, done } = setUp();
    void run("a", "a1", 0);
    turns.goOn("a", () => spend(200));
    void run("a", "a2", 0);
    void run("b", "b1", 0);
    await advance(300);
    expect(done).toEqual(["a1", "b1", "a2"]);
  });

  it("all work is done at last, and what throws rejects alone", async () => {
    const pieces = fc.array(fc.record({ client: fc.constantFrom("a", "b", "c"), ms: fc.integer({ min: 0, max: 30 }) }));
    await fc.assert(
      fc.asyncProperty(pieces, async (list) => {
        const { advance, run, turns, done } = setUp(20);
        for (const [at, { client, ms }] of list.entries()) void run(client, String(at), ms);
        const failing = turns.run("b", () => {
          throw new Error("no");
        });
        const refused = expect(failing).rejects.toThrow("no");
        for (let ms = 0; ms < 200; ms++) await advance(10);
        await refused;
        expect(done.toSorted()).toEqual(list.map((_, at) => String(at)).toSorted());
      }),
      { numRuns: 30 },
    );
  });
});
