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
  const { monotonicMs: nowMs } = clock;
  return { advance: (ms: number) => fake.advance(ms), done, run, spend, turns, nowMs, workedMs: () => workedMs };
}

/**
 * For each client in front: its piece, as long a pause, and the same for one that has used less. Then one
 * that began in the pause.
 */
const MOST_PIECES = 5;

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

  it("a busy client works for its part of the time while light clients, together, ask for all of it", async () => {
    const { advance, run, nowMs } = setUp(500);
    const pieces = { busy: 0, light: 0 };
    const startMs = nowMs();
    const endMs = startMs + 20_000;
    const workOn = async (): Promise<void> => {
      await run("busy", "busy", 20);
      pieces.busy++;
      if (nowMs() < endMs) await workOn();
    };
    // 15 clients that use 69 ms a second each: none is above 500 ms in the last seconds.
    const askForMore = () => {
      for (; nowMs() < endMs && pieces.light * 5 < (nowMs() - startMs) * 15 * 0.069; pieces.light++) {
        void run(`light-${pieces.light % 15}`, "light", 5).then(askForMore);
      }
    };
    void workOn();
    for (; nowMs() < endMs; await advance(1)) askForMore();
    expect(pieces.busy * 20).toBeGreaterThan(3_000);
    expect(pieces.light * 5).toBeGreaterThan(9_000);
  });

  it("each piece of work is done within a bound that grows with the clients, whatever the others do", async () => {
    const clients = fc.array(fc.record({ ms: fc.integer({ min: 0, max: 30 }), everyMs: fc.integer({ min: 1, max: 200 }) }), {
      minLength: 1,
      maxLength: 12,
    });
    await fc.assert(
      fc.asyncProperty(
        clients,
        fc.constantFrom(0, 20, 200),
        fc.integer({ min: 0, max: 3_000 }),
        async (others, lightMs, usedMs) => {
          const { advance, run, spend, turns, nowMs } = setUp(lightMs);
          turns.goOn("victim", () => spend(usedMs)); // so it may be the one that has used most
          await advance(usedMs);
          let [beganMs, longestMs] = [nowMs(), 0];
          const again = async (): Promise<void> => {
            beganMs = nowMs();
            await run("victim", "v", 10);
            longestMs = Math.max(longestMs, nowMs() - beganMs);
            return again();
          };
          void again();
          for (let ms = 0; ms < 500; ms++) {
            for (const [at, { ms: tookMs, everyMs }] of others.entries()) {
              if (ms % everyMs === 0) void run(`other-${at}`, "o", tookMs);
            }
            await advance(1);
          }
          expect(Math.max(longestMs, nowMs() - beganMs)).toBeLessThanOrEqual(MOST_PIECES * 30 * (others.length + 1));
        },
      ),
      { numRuns: 50 },
    );
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
