// The ownership protocol as a whole: the shipping core of both ends (src/mesh/link), planning and routes, with disks, streams and clocks
// that are data. docs/decisions/0044-the-protocol-without-io.md has what is checked, and how much of it.
import { expect, it } from "vitest";
import { DEFAULT_SUBSET } from "../../src/mesh/ownership/table.ts";
import { everyOf, FUZZ_SEED, shareOf } from "../support/fuzz.ts";
import { seededRandom } from "../support/random.ts";
import { atRest, withTwoLeaders } from "./calm.ts";
import { BLUE, INSIDE_CLUSTER, NAMESPACE_AND_CLUSTER, NAMESPACES } from "./rules.ts";
import { exhaust, wander } from "./search.ts";
import type { Step } from "./steps.ts";
import { createWorld, type Left, type World } from "./world.ts";

/** For each search that has no end of its own. */
const SECONDS = Number(process.env.MODEL_SECONDS ?? shareOf(24, 1 / 8));
if (!(SECONDS > 0)) throw new Error(`MODEL_SECONDS is "${process.env.MODEL_SECONDS}"; it has to be a number of seconds`);
const TIMEOUT_MS = SECONDS * 2_000 + 60_000;

it("every order of events of a move, with a write and without faults, has one writer and ends with an owner", {
  timeout: TIMEOUT_MS,
}, () => {
  const world = createWorld({ subsets: [DEFAULT_SUBSET, BLUE], left: { wishes: 1, faults: 0, writes: 1 } });
  const { worlds, isWhole } = exhaust(world, { untilMs: performance.now() + TIMEOUT_MS, convergeEach: everyOf(10), faults: [] });
  console.log(`model: ${worlds} worlds without faults, all of them`);
  expect(isWhole).toBe(true);
});

/** A fault before, in or after a move. */
const FAULTS: readonly Step["kind"][] = ["saved", "cut", "leads again", "hangs up", "crash", "gate changes"];

it.each(FAULTS)(
  'every order of events of a move with one fault "%s" has one writer and ends with an owner',
  {
    timeout: TIMEOUT_MS,
  },
  (fault) => {
    const { worlds, isWhole } = exhaust(restingWorld({ wishes: 1, faults: 1, writes: 1 }), {
      untilMs: performance.now() + TIMEOUT_MS,
      convergeEach: everyOf(20),
      faults: [fault],
    });
    console.log(`model: ${worlds} worlds with one fault "${fault}", all of them`);
    expect(isWhole).toBe(true);
  },
);

/** Those with more worlds than can be visited here. Only a new connection brings a promise, with tables. */
const MANY: readonly (readonly [string, Left, readonly Step["kind"][]])[] = [
  ["two moves, a cut", { wishes: 2, faults: 1, writes: 0 }, ["cut"]],
  ["no room after a cut", { wishes: 1, faults: 2, writes: 1 }, ["cut", "no room"]],
  ["a full disk after a cut", { wishes: 1, faults: 2, writes: 1 }, ["cut", "promise saved"]],
  ["a removal by force", { wishes: 1, faults: 1, writes: 1 }, ["removed by force"]],
  ["another leader", { wishes: 1, faults: 1, writes: 1 }, ["another leader"]],
];

it.each(MANY)("orders of events with %s, the short ones first", { timeout: TIMEOUT_MS }, (name, left, faults) => {
  const untilMs = performance.now() + (SECONDS * 1_000) / MANY.length;
  const { worlds, isWhole } = exhaust(restingWorld(left), { untilMs, convergeEach: everyOf(20), faults });
  console.log(`model: ${worlds} worlds with ${name}, ${isWhole ? "all" : "not all"} of them`);
  expect(worlds).toBeGreaterThan(100);
});

/** With a cluster as the second place, or with two namespaces inside it. A move takes as long as its API server may work on a write. */
const ABROAD: readonly (readonly [string, Left, readonly Step["kind"][], readonly string[]])[] = [
  ["and a write", { wishes: 1, faults: 0, writes: 1 }, [], NAMESPACE_AND_CLUSTER],
  ["and a crash", { wishes: 2, faults: 1, writes: 1 }, ["crash"], NAMESPACE_AND_CLUSTER],
  ["and a removal by force", { wishes: 1, faults: 1, writes: 1 }, ["removed by force"], NAMESPACE_AND_CLUSTER],
  ["and another leader", { wishes: 1, faults: 1, writes: 1 }, ["another leader"], NAMESPACE_AND_CLUSTER],
  ["inside it, and a broken write or crash", { wishes: 1, faults: 1, writes: 1 }, ["write breaks", "crash"], INSIDE_CLUSTER],
  ["inside it, and a removal by force", { wishes: 1, faults: 1, writes: 1 }, ["removed by force"], INSIDE_CLUSTER],
];

it.each(ABROAD)(
  "orders of events with another cluster %s, the short ones first",
  { timeout: TIMEOUT_MS },
  (name, left, faults, places) => {
    const untilMs = performance.now() + (SECONDS * 1_000) / ABROAD.length;
    const begin = atRest(createWorld({ subsets: [DEFAULT_SUBSET, BLUE], left, places }));
    const { worlds, isWhole } = exhaust(begin, { untilMs, convergeEach: everyOf(20), faults });
    console.log(`model: ${worlds} worlds with another cluster ${name}, ${isWhole ? "all" : "not all"} of them`);
    expect(worlds).toBeGreaterThan(100);
  },
);

/** At rest: from the very first registration on, a search would end before the first move. */
function restingWorld(left: Left): World {
  return atRest(createWorld({ subsets: [DEFAULT_SUBSET, BLUE], left }));
}

const NOTHING: Left = { wishes: 0, faults: 0, writes: 0 };

const beginsOf = (world: World) => [world, atRest(world), withTwoLeaders(world)];

/** @param share of the seconds: there are two such searches */
function wanderFrom(begins: readonly World[], share: number) {
  const random = seededRandom(FUZZ_SEED);
  const below = (limit: number) => Math.floor(random() * limit);
  let [schedules, steps] = [0, 0];
  for (const untilMs = performance.now() + SECONDS * 1_000 * share; performance.now() < untilMs; schedules++) {
    const [begin] = begins.slice(below(begins.length));
    if (begin !== undefined)
      steps += wander({ ...begin, left: { wishes: 1 + below(4), faults: below(6), writes: below(8) } }, 150, random);
  }
  return { schedules, steps };
}

it(`random orders of events with several moves and faults (SEED=${FUZZ_SEED})`, { timeout: TIMEOUT_MS }, () => {
  const begins = [
    [DEFAULT_SUBSET, BLUE],
    [DEFAULT_SUBSET, BLUE, DEFAULT_SUBSET],
  ].flatMap((subsets) =>
    [NAMESPACES, NAMESPACE_AND_CLUSTER].flatMap((places) => beginsOf(createWorld({ subsets, left: NOTHING, places }))),
  );
  const { schedules, steps } = wanderFrom(begins, 1 / 3);
  console.log(`model: ${schedules} random schedules, ${steps} steps`);
  expect(schedules).toBeGreaterThan(20);
});

it(`random orders of events inside another cluster (SEED=${FUZZ_SEED})`, { timeout: TIMEOUT_MS }, () => {
  const begins = [{ subsets: [DEFAULT_SUBSET, BLUE] }, { subsets: [DEFAULT_SUBSET, BLUE, BLUE], old: [2] }].flatMap((size) =>
    beginsOf(createWorld({ ...size, left: NOTHING, places: INSIDE_CLUSTER })),
  );
  const { schedules, steps } = wanderFrom(begins, 2 / 3);
  console.log(`model: ${schedules} random schedules inside another cluster, ${steps} steps`);
  expect(schedules).toBeGreaterThan(20);
});
