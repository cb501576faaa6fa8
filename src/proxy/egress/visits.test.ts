import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createVisits } from "./visits.ts";

function setup(maxOpen?: number) {
  const clock = createFakeClock();
  const seen: unknown[] = [];
  const log: unknown[] = [];
  let open = 0;
  const openIn = new Map<string, number>();
  const metrics = {
    decided: (result: string, cluster: string) => void seen.push(cluster === "" ? result : [result, cluster]),
    open(change: number, cluster: string) {
      open += change;
      openIn.set(cluster, (openIn.get(cluster) ?? 0) + change);
    },
  };
  const visits = createVisits({ clock, metrics, accessLog: { pick: () => (fields) => void log.push(fields) }, maxOpen });
  return { visits, clock, seen, log, openNow: () => open, openIn };
}

describe("a visit", () => {
  it("is counted once and logged at its end, with what is known of it", async () => {
    const { visits, clock, seen, log, openNow } = setup();
    const visit = visits.begin("GET");
    Object.assign(visit.notes, { host: "a.example", bytes: () => 7 });
    visit.decided("allowed");
    visit.decided("timeout");
    expect([seen, log, openNow(), visit.signal.aborted]).toEqual([["allowed"], [], 1, false]);
    await clock.advance(2_000);
    for (let i = 0; i < 2; i++) visit.over();
    const line = { direction: "egress", method: "GET", host: "a.example", bytes: 7, decision: "allowed", seconds: 2 };
    expect([seen, log, openNow(), visit.signal.aborted]).toEqual([["allowed"], [line], 0, true]);
  });

  it("to a cluster is counted and logged there", () => {
    const { visits, seen, log, openIn } = setup();
    const visit = visits.begin("CONNECT");
    visit.goesTo({ host: "eu.example", port: 443 }, "eu-1");
    expect(Object.fromEntries(openIn)).toEqual({ "": 0, "eu-1": 1 });
    visit.decided("not-owned");
    visit.over();
    expect(seen).toEqual([["not-owned", "eu-1"]]);
    expect(Object.fromEntries(openIn)).toEqual({ "": 0, "eu-1": 0 });
    expect(log).toMatchObject([{ host: "eu.example", port: 443, cluster: "eu-1", decision: "not-owned" }]);
  });

  it("that ends before a decision was left by its client", () => {
    const { visits, seen } = setup();
    visits.begin("GET").over();
    expect(seen).toEqual(["client-gone"]);
  });
});

describe("when all places are taken, a visit", () => {
  const server = (name: string, port = 443) => ({ host: `${name}.example`, port });
  const full = () => {
    const world = setup(4);
    const begin = (host: string, cluster?: string, port?: number) => {
      const visit = world.visits.begin("CONNECT");
      visit.goesTo(server(host, port), cluster);
      return visit;
    };
    const greedy = [1, 2, 3, 4].map((port) => begin("eu", "eu-1", port));
    return { ...world, begin, greedy, cut: () => greedy.map(({ signal }) => signal.aborted) };
  };

  it("to another cluster gets the oldest place of the cluster that has the most, until it has its share", () => {
    const { begin, greedy, cut, seen } = full();
    for (const visit of greedy) visit.noteSent();
    for (let i = 0; i < 2; i++) begin("us", "us-1").noteSent();
    expect([cut(), seen.slice(0, 2)]).toEqual([
      [true, true, false, false],
      [
        ["too-many", "eu-1"],
        ["too-many", "eu-1"],
      ],
    ]);
    expect(() => begin("us", "us-1")).toThrow("us.example:443: all 4 places are taken, and this server has its share of them");
    expect(cut()).toEqual([true, true, false, false]);
  });

  it("to the same cluster takes none from a visit that has sent something, whatever the server", () => {
    const { begin, greedy, cut } = full();
    for (const visit of greedy) visit.noteSent();
    expect(() => begin("eu", "eu-1", 5)).toThrow("all 4 places are taken");
    expect(cut()).toEqual([false, false, false, false]);
  });

  it("gets a place when another one ends", () => {
    const { begin, greedy } = full();
    for (const visit of greedy) visit.noteSent();
    greedy[3]?.over();
    expect(begin("eu", "eu-1").signal.aborted).toBe(false);
  });
});

describe("a drain", () => {
  it("ends quiet visits at once, and others when its time is over", async () => {
    const { visits, clock } = setup();
    const [quiet, busy] = [visits.begin("CONNECT"), visits.begin("GET")];
    quiet.isQuiet = () => true;
    let isOver = false;
    const drained = visits.drain(8_000).then(() => {
      isOver = true;
    });
    expect([quiet.signal.aborted, busy.signal.aborted]).toEqual([true, false]);
    await clock.advance(7_900);
    expect([isOver, busy.signal.aborted]).toEqual([false, false]);
    await clock.advance(200);
    await drained;
    expect(busy.signal.aborted).toBe(true);
  });

  it("ends with the last visit", async () => {
    const { visits, clock } = setup();
    const visit = visits.begin("GET");
    const drained = visits.drain(8_000);
    visit.over();
    await clock.advance(100);
    await drained;
  });
});
