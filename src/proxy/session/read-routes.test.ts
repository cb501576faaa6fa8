import { describe, expect, it, vi } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { type Routes, routes } from "../../../test/support/test-routes.ts";
import { createEnforcer } from "./enforcer.ts";
import { LOST_MOVES, type MovesMemory, type StoredMoves } from "./memory.ts";
import { createReadRoutes, EVENT_MS, MAX_BEHIND_MS } from "./read-routes.ts";

const PODS = { group: "", resource: "pods" };
const OWN: Routes = { blue: ["a", "b"], defaultSubset: ["n"] };
const LOST: Routes = { blue: ["a"], defaultSubset: ["b", "n"] };
const KNOWN: StoredMoves = { resources: new Map(), hasLostOthers: false };

function setup() {
  const clock = createFakeClock();
  const session = createEnforcer();
  let read = () => LOST_MOVES;
  const changed = vi.fn();
  const memory: MovesMemory = {
    before: undefined,
    keep(source) {
      read = source;
    },
    changed,
  };
  const reads = createReadRoutes(session, memory, clock);
  reads.movesMemory.keep(() => KNOWN);
  const followed: string[] = [];
  reads.onChange((now, before) => followed.push(`${before?.snapshot.version ?? "none"} to ${now.snapshot.version}`));
  let version = 0;
  const enforce = (next: Routes) => session.enforce(routes(++version, next));
  enforce(OWN);
  const shown = () => reads.current?.snapshot.version;
  return { clock, session, reads, enforce, followed, shown, changed, stored: () => read() };
}

describe("the routes of lists and watches", () => {
  it("are those of the session, at once, if no written place goes to another owner", () => {
    const { reads, session, enforce, followed, changed } = setup();
    reads.beginWrite("a", PODS)();
    reads.beginWrite("n", PODS, "foreign");
    enforce(LOST);
    enforce({ blue: [], defaultSubset: ["b", "n"] }); // a was deleted
    expect(followed).toEqual(["none to 1", "1 to 2", "2 to 3"]);
    expect(reads.current).toBe(session.current);
    expect(changed).not.toHaveBeenCalled();
  });

  it("keep a place until the events of its last writes have had their time, and then follow the newest in one step", async () => {
    const { clock, reads, session, enforce, followed, shown } = setup();
    const end = reads.beginWrite("b", PODS);
    reads.beginWrite("b", PODS)();
    enforce(LOST);
    expect(session.current?.snapshot.version).toBe(2);
    await clock.advance(EVENT_MS);
    end();
    enforce({ ...LOST, blue: ["a", "z"] });
    await clock.advance(EVENT_MS - 1);
    expect(shown()).toBe(1);
    await clock.advance(1);
    expect(shown()).toBe(3);
    expect(followed).toEqual(["none to 1", "1 to 3"]);
  });

  it("follow after 1.5 s, whatever is in flight and however often they change", async () => {
    const { clock, reads, enforce, followed, shown } = setup();
    reads.beginWrite("b", PODS);
    enforce(LOST);
    await clock.advance(MAX_BEHIND_MS - 1);
    reads.beginWrite("a", PODS);
    enforce({ blue: [], defaultSubset: ["a", "b", "n"] });
    expect(shown()).toBe(1);
    await clock.advance(1);
    expect(followed).toEqual(["none to 1", "1 to 3"]);
    await clock.advance(MAX_BEHIND_MS);
    expect(followed).toHaveLength(2);
  });

  it("follow early if the place is the subset's again", async () => {
    const { clock, reads, enforce, followed } = setup();
    reads.beginWrite("b", PODS)();
    enforce(LOST);
    enforce(OWN);
    await clock.advance(EVENT_MS);
    expect(followed).toEqual(["none to 1", "1 to 3"]);
  });

  it("are stored as lost while they are behind, and stored again when they follow", async () => {
    const { clock, reads, enforce, changed, stored } = setup();
    expect(stored()).toBe(KNOWN);
    reads.beginWrite("b", PODS)();
    enforce(LOST);
    expect(stored()).toBe(LOST_MOVES);
    await clock.advance(EVENT_MS);
    expect(stored()).toBe(KNOWN);
    expect(changed).toHaveBeenCalledTimes(1);
  });

  it("count a write in the session until its first end, and are undefined when the session is", () => {
    const { session, reads } = setup();
    const end = reads.beginWrite("b", PODS);
    expect(session.isQuiet).toBe(false);
    end();
    end();
    expect(session.isQuiet).toBe(true);
    expect(
      createReadRoutes(createEnforcer(), { before: undefined, keep: vi.fn(), changed: vi.fn() }, createFakeClock()).current,
    ).toBe(undefined);
  });
});
