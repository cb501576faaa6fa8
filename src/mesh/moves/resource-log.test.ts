import { describe, expect, it } from "vitest";
import { NEVER, type Version, WITHOUT_END } from "../../kube/resource-version.ts";
import { type Due, TOLD_NOTHING } from "./known.ts";
import { MAX_NAMED, type Moves } from "./moves-between.ts";
import { ResourceLog } from "./resource-log.ts";
import type { StoredResource } from "./stored-moves.ts";

const ALL = { group: "", resource: "pods", namespace: "" };
const NOTHING: Due = { kind: "nothing" };
const EXPIRED: Due = { kind: "expired" };
const moved = (...names: string[]): Due => ({ kind: "moved", moved: names, departed: [] });
const departed = (...names: string[]): Due => ({ kind: "moved", moved: [], departed: names });
const many = (count: number) => Array.from({ length: count }, (_, index) => `n${index}`);
const range = (from: number, count: number) => Array.from({ length: count }, (_, index) => BigInt(from + index));

/** A log and the changes of the routes that it takes, numbered from 1. */
function setup(given: Version = 7n, before?: StoredResource) {
  const left = new Set<string>();
  const log = new ResourceLog(left, 0, before);
  if (given > NEVER) log.give(given);
  let sequence = 0;
  const take = (moves: Partial<Moves>) =>
    log.take({ isEverything: false, moved: [], born: new Map(), departed: [], ...moves }, ++sequence);
  const since = (version: Version, namespace = "") => log.since({ ...ALL, namespace }, { version, told: TOLD_NOTHING });
  const live = (told: number, departedUpTo = told) =>
    log.since(ALL, { version: NEVER, told, departed: { version: NEVER, told: departedUpTo } });
  return { log, left, take, since, live };
}

describe("what a client has to be told", () => {
  it.each<[string, Partial<Moves>, Due, Due, Due]>([
    // everything, as of the version; in namespace a; in namespace b
    ["a move", { moved: ["a"] }, moved("a"), moved("a"), NOTHING],
    ["more moves than are named", { moved: undefined }, EXPIRED, EXPIRED, EXPIRED],
    ["more moves than a client is told of", { moved: ["b", ...many(17)] }, EXPIRED, NOTHING, moved("b")],
    ["everything", { isEverything: true }, EXPIRED, EXPIRED, EXPIRED],
    ["a birth of which nothing was left out", { born: new Map([["a", true]]) }, NOTHING, NOTHING, NOTHING],
  ])("of %s, up to the highest version that was given before it", (_, moves, all, inA, inB) => {
    const { take, since } = setup();
    take(moves);
    expect([since(7n), since(7n, "a"), since(7n, "b")]).toEqual([all, inA, inB]);
    expect([since(8n), since(8n, "a"), since(8n, "b")]).toEqual([NOTHING, NOTHING, NOTHING]);
  });

  it("of a departure: up to a version that is later than its last events", () => {
    const { log, take, since } = setup();
    take({ departed: ["a"] });
    expect([since(1_000n), since(1_000n, "a"), since(1_000n, "b")]).toEqual([departed("a"), departed("a"), NOTHING]);
    expect(log.stored).toEqual({ horizon: NEVER, namespacesHorizon: NEVER, departed: ["a"] }); // nobody was told yet
    log.learn?.(20n);
    expect([since(20n), since(21n)]).toEqual([departed("a"), NOTHING]);
    expect(log.stored.namespacesHorizon).toBe(20n);
  });

  it("is only that buckets or everything moved, if it sees no namespaces, and no bucket, if it sees namespaces", () => {
    const { log, take, since } = setup();
    const seen = (scope: "cluster" | "namespaced") => log.since({ ...ALL, scope }, { version: 7n, told: TOLD_NOTHING });
    take({ moved: ["a", "#1"] });
    expect([seen("cluster"), seen("namespaced"), since(7n)]).toEqual([moved("#1"), moved("a"), moved("a", "#1")]);
    take({ moved: many(MAX_NAMED) });
    expect([seen("cluster"), seen("namespaced")]).toEqual([moved("#1"), EXPIRED]);
    take({ moved: undefined, departed: ["b"] });
    expect(seen("cluster")).toEqual(moved("#1"));
    // The next process does not tell of buckets, so their clients list.
    expect([log.stored.horizon, setup().log.stored.horizon]).toEqual([7n, NEVER]);
  });

  it("is everything, whatever it sees", () => {
    const { log, take } = setup();
    const seen = () => log.since({ ...ALL, scope: "cluster" }, { version: 7n, told: TOLD_NOTHING });
    expect(seen()).toEqual(NOTHING);
    take({ isEverything: true });
    expect(seen()).toEqual(EXPIRED);
  });

  it("is each move at its latest version", () => {
    const { log, take, since } = setup();
    take({ moved: ["a"] });
    take({ moved: ["b"] });
    log.give(9n);
    log.give(8n);
    take({ moved: ["a"] });
    expect([since(7n), since(8n), since(10n)]).toEqual([moved("b", "a"), moved("a"), NOTHING]);
  });

  it("is without end where a version could not be read", () => {
    const { log, take, since } = setup();
    log.give(undefined);
    take({ moved: ["a"] });
    expect(since(1_000_000n)).toEqual(moved("a"));
  });

  it("is, for a live watch, what has come since it was told; departures count from when it was sent", () => {
    const { take, live } = setup();
    take({ moved: ["a"] });
    take({ departed: ["d"] });
    take({ moved: ["b"] });
    expect([live(0), live(1), live(3), live(3, 0)]).toEqual([
      { kind: "moved", moved: ["a", "b"], departed: ["d"] },
      { kind: "moved", moved: ["b"], departed: ["d"] },
      NOTHING,
      departed("d"),
    ]);
  });
});

describe("a namespace that is born", () => {
  const born = (isOwn: boolean) => ({ born: new Map([["n", isOwn]]) });

  it.each<[string, (log: ResourceLog) => void, boolean, boolean, Due]>([
    ["as the subset's", () => undefined, false, true, NOTHING],
    ["as the subset's, with objects left out", (log) => log.leaveOut("n"), false, true, moved("n")],
    ["as the subset's, while the API server hides unknown ones", (log) => log.hideUnknown(), false, true, moved("n")],
    ["as the subset's, after another subset had it", () => undefined, true, true, moved("n")],
    ["as the subset's, after names were forgotten", (log) => log.forgetNames(), false, true, moved("n")],
    ["as another subset's", (log) => log.leaveOut("n"), true, false, NOTHING],
  ])("%s", (name, prepare, hasLeft, isOwn, due) => {
    const { log, left, take, since } = setup();
    prepare(log);
    if (hasLeft) left.add("n");
    expect(log.hasLeftOut("n")).toBe(hasLeft || name.includes("left out"));
    take(born(isOwn));
    expect([since(7n), since(8n)]).toEqual([due, NOTHING]);
    left.clear();
    expect(log.hasLeftOut("n")).toBe(false);
  });

  it.each<[string, boolean, boolean, Version]>([
    ["again as the subset's, may not have been shown since it departed", true, false, 9n],
    ["again as the subset's, with objects left out meanwhile", true, true, 9n],
    ["again as another subset's", false, false, 9n],
  ])("%s", (_, isOwn, isLeftOut, upTo) => {
    const { log, left, take, since } = setup();
    take({ departed: ["n"] });
    left.add("n");
    expect(log.isDeparted("n")).toBe(true);
    log.give(9n);
    if (isLeftOut) log.leaveOut("n");
    take(born(isOwn));
    expect([since(upTo), since(upTo + 1n), log.isDeparted("n")]).toEqual([moved("n"), NOTHING, false]);
  });
});

describe("a list under way", () => {
  it("raises what moved since its request to its version, and nothing that moved before", () => {
    const { log, take, since } = setup();
    take({ moved: ["before"] });
    const list = log.beginList();
    take({ moved: ["a"] });
    list.answered(20n);
    expect([since(7n), since(8n), since(20n), since(21n)]).toEqual([moved("before", "a"), moved("a"), moved("a"), NOTHING]);
  });

  it.each<[string, Partial<Moves>, Due]>([
    ["everything", { isEverything: true }, EXPIRED],
    ["too much to name", { moved: undefined }, EXPIRED],
  ])("raises %s as well, without end if its version cannot be read", (_, moves, due) => {
    for (const version of [20n, undefined]) {
      const { log, take, since } = setup();
      const list = log.beginList();
      take(moves);
      list.answered(version);
      expect([since(20n), since(21n)]).toEqual([due, version === undefined ? due : NOTHING]);
    }
  });

  it("that fails raises nothing", () => {
    const { log, take, since } = setup();
    const list = log.beginList();
    take({ moved: ["a"] });
    list.end();
    list.answered(20n);
    expect(since(8n)).toEqual(NOTHING);
    expect(log.stored.namespacesHorizon).toBe(7n);
  });

  it("is stored without end, as is all that it may raise", () => {
    const { log, take } = setup();
    take({ departed: ["before"] });
    const list = log.beginList();
    expect(log.stored).toEqual({ horizon: NEVER, namespacesHorizon: NEVER, departed: ["before"] });
    take({ moved: ["a"], isEverything: true });
    const stored = (version: Version) => ({ horizon: version, namespacesHorizon: version, departed: ["before"] });
    expect(log.stored).toEqual(stored(WITHOUT_END));
    list.answered(20n);
    expect(log.stored).toEqual(stored(20n));
  });
});

describe("a client that was told", () => {
  it("lists again if it continues from one of the events, which came after later ones", () => {
    const { log, since } = setup();
    log.tell(9n, [5n, 6n, 9n]);
    expect([4n, 5n, 6n, 7n, 9n].map((version) => since(version))).toEqual([NOTHING, EXPIRED, EXPIRED, NOTHING, NOTHING]);
  });

  it("has been given the version up to which it was told", () => {
    const { log, take, since } = setup();
    log.tell(9n, []);
    take({ moved: ["a"] });
    expect([since(9n), since(10n)]).toEqual([moved("a"), NOTHING]);
  });

  it("lists again below the version of an event that is forgotten", () => {
    const { log, since, live } = setup();
    log.tell(20_000n, range(1, 10_001));
    expect([since(1n), since(2n), since(10_002n), live(0)]).toEqual([EXPIRED, EXPIRED, NOTHING, NOTHING]);
  });
});

describe("the names", () => {
  it("are bounded: below the oldest that is forgotten, a version is expired", () => {
    const { log, take, since } = setup(NEVER);
    for (const version of range(1, 1_001)) {
      log.give(version);
      take({ moved: [`n${version}`] });
    }
    expect([since(1n), since(1n, "other"), since(1_001n)]).toEqual([EXPIRED, EXPIRED, moved("n1001")]);
    expect([since(2n, "n2"), since(2n, "n1")]).toEqual([moved("n2"), NOTHING]);
  });

  it("of departed namespaces are stored up to a smaller bound, the newest", () => {
    const { log, take } = setup();
    take({ departed: many(201) });
    take({ moved: ["a"] });
    expect(log.stored).toEqual({ horizon: NEVER, namespacesHorizon: 7n, departed: many(201).slice(1) });
  });

  it("of which something was left out are bounded: beyond it, something of all may have been", () => {
    const { log, take, since } = setup();
    for (const name of many(1_001)) log.leaveOut(name);
    take({ born: new Map([["another", true]]) });
    expect(since(7n)).toEqual(moved("another"));
  });
});

describe("after a restart", () => {
  const left = (more: Partial<StoredResource> = {}): StoredResource => ({
    horizon: NEVER,
    namespacesHorizon: 7n,
    departed: [],
    ...more,
  });

  it.each<[string, Partial<StoredResource>, Due]>([
    ["a move", {}, NOTHING],
    ["a departure", { departed: ["a"] }, departed("a")],
    ["a horizon", { horizon: 7n, namespacesHorizon: NEVER }, NOTHING],
    ["a move without a version", { namespacesHorizon: WITHOUT_END }, EXPIRED],
  ])("a client from before %s expires: it may have been told, and may know more than it says", (_, more, later) => {
    const { since } = setup(NEVER, left(more));
    expect([since(7n), since(8n)]).toEqual([EXPIRED, later]);
  });

  it("the last events of a departed namespace are still to be shown", () => {
    const { log, take, since } = setup(NEVER, left({ departed: ["a"] }));
    expect(log.isDeparted("a")).toBe(true);
    log.give(9n);
    take({ born: new Map([["a", false]]) });
    expect([since(1_000n), log.isDeparted("a")]).toEqual([moved("a"), false]);
  });

  it("whatever happens is later than all versions until one is learned that was asked for since", () => {
    const { log, take, since } = setup(9n, left({ namespacesHorizon: NEVER }));
    expect(log.learn).toBeUndefined(); // nothing depends on it
    take({ moved: ["b"] });
    const early = log.learn;
    take({ moved: ["c"] });
    early?.(10n);
    expect(since(1_000n)).toEqual(moved("b", "c"));
    log.learn?.(20n);
    expect([since(20n), since(21n), log.learn]).toEqual([moved("b", "c"), NOTHING, undefined]);
    take({ moved: ["d"] });
    expect([since(20n), since(21n)]).toEqual([moved("b", "c", "d"), NOTHING]);
  });

  it("a namespace that is born may have been left out before", () => {
    const { log, take, since } = setup(NEVER, left({ namespacesHorizon: NEVER }));
    take({ born: new Map([["n", true]]) });
    expect(since(1_000n)).toEqual(moved("n"));
    log.learn?.(20n);
    expect([since(20n), since(21n)]).toEqual([moved("n"), NOTHING]);
  });
});

it("a log that begins late expires the watches that were told of less", () => {
  const log = new ResourceLog(new Set(), 3);
  const live = (told: number) => log.since(ALL, { version: NEVER, told });
  expect([live(2), live(3), log.since(ALL, { version: 1n, told: TOLD_NOTHING })]).toEqual([EXPIRED, NOTHING, NOTHING]);
});
