import { describe, expect, it } from "vitest";
import { type Routes, routes } from "../../../test/support/test-routes.ts";
import { NEVER } from "../../kube/resource-version.ts";
import { createEnforcer } from "../../proxy/session/enforcer.ts";
import { TOLD_NOTHING } from "./known.ts";
import { createMoveLog } from "./move-log.ts";
import { LOST, LOST_MOVES, movesFromContent, movesToContent, type StoredMoves } from "./stored-moves.ts";

const PODS = { group: "", resource: "pods", namespace: "" };
const OWN: Routes = { blue: ["a"], defaultSubset: ["b"] };
const MORE: Routes = { blue: ["a", "b"] };
const UNMOVED_ALL: StoredMoves = { resources: new Map(), hasLostOthers: false };
const MOVED = { kind: "moved", moved: ["b"], departed: [] };

function setup(movesBefore?: StoredMoves, first: Routes = OWN) {
  const session = createEnforcer();
  let read: () => StoredMoves = () => LOST_MOVES;
  const keepMoves = (source: typeof read) => {
    read = source;
  };
  const moves = createMoveLog(session, { before: movesBefore, keep: keepMoves });
  let version = 0;
  const enforce = (next: Routes) => session.enforce(routes(++version, next));
  enforce(first);
  const since = (from: bigint, collection = PODS) =>
    moves.of(collection).since(collection, { version: from, told: TOLD_NOTHING });
  const stored = () => movesFromContent(JSON.parse(JSON.stringify(movesToContent(read()))));
  return { session, moves, enforce, since, stored };
}

describe("a client that continues from a version", () => {
  it("is told of the moves that came when versions up to it, or later ones, had been given", () => {
    const { moves, enforce, since } = setup();
    moves.of(PODS).give(7n);
    enforce(MORE);
    expect([6n, 7n, 8n].map((version) => since(version))).toEqual([MOVED, MOVED, { kind: "nothing" }]);
    expect(since(8n, { ...PODS, resource: "secrets" })).toEqual({ kind: "nothing" });
  });

  it("is told of a move that came while a list was under way, up to the list's version", () => {
    const { moves, enforce, since } = setup();
    const list = moves.of(PODS).beginList();
    enforce(MORE);
    list.answered(9n);
    list.answered(20n);
    list.end();
    expect([since(9n), since(10n)]).toEqual([MOVED, { kind: "nothing" }]);
  });
});

describe("a live watch", () => {
  it("is told of each move once, and hears of the change only after the log", () => {
    const { session, moves, enforce } = setup();
    moves.of(PODS).give(7n);
    const seen: unknown[] = [];
    let told = moves.of(PODS).position;
    const stop = session.onChange(() => {
      seen.push(moves.of(PODS).since(PODS, { version: NEVER, told }));
      told = moves.of(PODS).position;
    });
    enforce(MORE);
    enforce({ ...MORE, defaultSubset: ["c"] });
    stop();
    enforce(OWN);
    expect(seen).toEqual([MOVED, { kind: "nothing" }]);
  });

  it("of a resource that was forgotten expires with the next move, and whoever continues expires at once", () => {
    const { moves, enforce, since } = setup();
    moves.of(PODS).give(7n);
    const told = moves.of(PODS).position;
    for (let index = 0; index < 1_000; index++) moves.of({ group: "", resource: `r${index}` }).give(1n);
    enforce(MORE);
    expect(moves.of(PODS).since(PODS, { version: NEVER, told })).toEqual({ kind: "expired" });
    expect(since(1_000n)).toEqual({ kind: "expired" });
  });
});

describe("an unknown namespace", () => {
  it("that turns out to be the subset's is told only if something of it was left out", () => {
    const { moves, enforce, since } = setup();
    moves.of(PODS).give(7n);
    moves.of(PODS).leaveOut("left");
    enforce({ ...OWN, blue: ["a", "left", "other"] });
    expect(since(7n)).toEqual({ kind: "moved", moved: ["left"], departed: [] });
  });

  it("that was another subset's before it left is told", () => {
    const { moves, enforce, since } = setup();
    moves.of(PODS).give(7n);
    enforce({ blue: ["a"] });
    expect(since(7n)).toEqual({ kind: "nothing" });
    enforce(MORE);
    expect(since(7n)).toEqual(MOVED);
  });

  it("that a fence named before it left is told", () => {
    const { moves, enforce, since } = setup();
    enforce({ ...OWN, fenced: ["n"] });
    moves.of(PODS).give(7n);
    enforce(OWN);
    enforce({ ...OWN, blue: ["a", "n"] });
    expect(since(7n)).toEqual({ kind: "moved", moved: ["n"], departed: [] });
  });

  it("that was the subset's is told as soon as another subset has it, or a fence names it: its last events do not come", () => {
    for (const next of [MORE, { ...MORE, fenced: ["n"] }, { ...MORE, defaultSubset: ["n"] }]) {
      const { moves, enforce, since } = setup(undefined, { blue: ["a", "b", "n"] });
      moves.of(PODS).give(7n);
      enforce(MORE);
      expect([since(7n), moves.of(PODS).isDeparted("n")]).toEqual([{ kind: "moved", moved: [], departed: ["n"] }, true]);
      enforce(next);
      const isBack = next !== MORE;
      expect([since(7n), moves.of(PODS).isDeparted("n")]).toEqual([
        { kind: "moved", moved: isBack ? ["n"] : [], departed: isBack ? [] : ["n"] },
        !isBack,
      ]);
    }
  });

  it("is told if it may be one of too many that have left", () => {
    const { moves, enforce, since } = setup();
    moves.of(PODS).give(7n);
    enforce({ ...OWN, defaultSubset: Array.from({ length: 10_001 }, (_, index) => `n${index}`) });
    enforce({ blue: ["a"] });
    enforce({ blue: ["a", "n5"] });
    expect([since(7n), since(8n)]).toEqual([{ kind: "moved", moved: ["n5"], departed: [] }, { kind: "nothing" }]);
  });
});

describe("after a restart", () => {
  const left = (horizon = NEVER): StoredMoves => ({
    resources: new Map([["/pods", { horizon, namespacesHorizon: 7n, departed: [] }]]),
    hasLostOthers: false,
  });

  it.each<[string, StoredMoves | undefined, "nothing" | "expired", "nothing" | "expired"]>([
    ["nothing was before", undefined, "nothing", "nothing"],
    ["what was before is lost", LOST_MOVES, "expired", "expired"],
    ["the moves are stored", left(), "expired", "nothing"],
    ["a horizon is stored", left(7n), "expired", "nothing"],
    ["the moves of other resources are stored", UNMOVED_ALL, "nothing", "nothing"],
    ["those of others are lost", { ...UNMOVED_ALL, hasLostOthers: true }, "expired", "expired"],
  ])("where %s, clients continue accordingly", (_, before, at, later) => {
    const { since } = setup(before);
    expect([since(7n).kind, since(8n).kind]).toEqual([at, later]);
  });

  it.each([
    ["a stored resource", left()],
    ["one that nobody has asked for yet", UNMOVED_ALL],
  ])("a move of %s counts as later than all versions until the API server's version is known", (_, before) => {
    const { moves, enforce, since } = setup(before);
    enforce(MORE);
    expect(since(1_000n)).toEqual(MOVED);
    moves.of(PODS).learn?.(50n);
    expect([since(50n), since(51n), moves.of(PODS).learn]).toEqual([MOVED, { kind: "nothing" }, undefined]);
  });

  it("a namespace that is named only by a fence at first moves when it is granted", () => {
    const { moves, enforce, since } = setup(LOST_MOVES);
    moves.of(PODS).learn?.(50n);
    enforce({ ...OWN, fenced: ["n"] });
    moves.of(PODS).give(60n);
    enforce({ ...OWN, blue: ["a", "n"] });
    expect([since(60n), since(61n)]).toEqual([{ kind: "moved", moved: ["n"], departed: [] }, { kind: "nothing" }]);
  });

  it("a version that was asked for before a move does not count for it", () => {
    const { moves, enforce, since } = setup(LOST_MOVES);
    const learn = moves.of(PODS).learn;
    enforce(MORE);
    learn?.(50n);
    expect(since(51n)).toEqual({ kind: "expired" });
    moves.of(PODS).learn?.(60n);
    expect([since(60n), since(61n)]).toEqual([{ kind: "expired" }, { kind: "nothing" }]);
  });

  it("the next process is told the same, for as many processes as there are", () => {
    const first = setup();
    first.moves.of(PODS).give(7n);
    first.enforce(MORE);
    const second = setup(first.stored(), MORE);
    const third = setup(second.stored(), MORE);
    for (const { since } of [second, third]) expect([since(7n), since(8n)]).toEqual([{ kind: "expired" }, { kind: "nothing" }]);
  });

  it("a move during a list that was never answered has no version yet", () => {
    const first = setup();
    first.moves.of(PODS).beginList();
    first.enforce(MORE);
    expect(setup(first.stored(), MORE).since(1_000n)).toEqual({ kind: "expired" });
  });

  it("resources of a still earlier process are lost once the routes have changed without them", () => {
    const first = setup();
    expect(first.stored().hasLostOthers).toBe(false);
    first.enforce(MORE);
    expect(first.stored().hasLostOthers).toBe(false); // nobody was served them
    const second = setup(first.stored(), MORE);
    expect(second.stored().hasLostOthers).toBe(false);
    second.enforce(OWN);
    expect(setup(second.stored(), OWN).since(1_000n)).toEqual({ kind: "expired" });
  });

  it("resources that were forgotten are lost", () => {
    const { moves, stored } = setup();
    for (let index = 0; index <= 1_000; index++) moves.of({ group: "", resource: `r${index}` }).give(1n);
    const { hasLostOthers, resources } = stored();
    expect([hasLostOthers, resources.size, resources.has("/r0")]).toEqual([true, 1_000, false]);
  });

  it("a resource of which everything is lost stays so", () => {
    const { moves, stored } = setup(LOST_MOVES);
    moves.of(PODS).give(7n);
    expect(stored().resources.get("/pods")).toEqual(LOST);
  });
});
