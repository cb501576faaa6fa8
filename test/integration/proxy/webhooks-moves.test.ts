// A namespace that moves between two subsets again and again, under load at the pods of three. The tables reach the pods in any order that the manager allows:
// the grant comes after the loser has the new table.
import { afterAll, beforeAll, expect, it } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { type ReviewPod, type ReviewWorld, reviewOf, startReviewWorld } from "../../support/review-world.ts";
import { subset, table } from "../../support/route-table.ts";

const RULES = [subset("canary"), subset("third")];
const MOVES = 40;
const quiet = (owner: string) => table(RULES, { prod: owner === "canary" ? [0] : [] });
const fenced = (owner: string) => table(RULES, { prod: owner === "canary" ? [0] : [] }, { fenced: ["prod"] });

let world: ReviewWorld;
let pods: Record<"stable" | "canary" | "third", ReviewPod>;
beforeAll(async () => {
  world = await startReviewWorld();
  const [stable, canary, third] = [
    await world.addPod("stable", ""),
    await world.addPod("canary", "canary"),
    await world.addPod("third", "third"),
  ];
  pods = { stable, canary, third };
  world.tell();
});
afterAll(() => world?.stop());

const pause = () => new Promise((resolve) => setTimeout(resolve, Math.random() * 12));

it("each review is answered once, by a pod of the owner of its time, and none fails", async () => {
  const { stable, canary, third } = pods;
  for (const pod of [stable, canary, third]) pod.enforce(quiet("stable"));
  // The owner by the grants, and how many there were: a review within one grant's time has one right answer.
  const granted = { owner: "stable", count: 0 };
  let isOver = false;
  let calls = 0;
  const wrong: unknown[] = [];
  const load = Array.from({ length: 6 }, async (_, at) => {
    const entry = [stable, canary, third][at % 3] ?? stable;
    while (!isOver) {
      const before = { ...granted };
      const answer = await world.call(entry, reviewOf("prod"), { path: "/mutate?timeout=10s" });
      const by = answer.status === 200 ? (JSON.parse(answer.body) as { by: string }).by : answer.body;
      calls++;
      const isRight = before.count === granted.count ? by === before.owner : by === "stable" || by === "canary";
      if (!isRight) wrong.push({ entry: entry.peer.name, by, before, granted: { ...granted } });
    }
  });
  for (let move = 0; move < MOVES; move++) {
    const [loser, winner] = move % 2 === 0 ? [stable, canary] : [canary, stable];
    const to = winner.peer.name;
    const steps = [() => winner.enforce(fenced(to)), () => loser.enforce(quiet(to)), () => third.enforce(quiet(to))];
    const [first, second, last] = [0, 1, 2].map((index) => steps[(index + move) % 3]);
    for (const step of move % 4 < 2 ? [first, second, last] : [last, second, first]) {
      await pause();
      step?.();
    }
    await pause();
    granted.owner = to;
    granted.count++;
    winner.enforce(quiet(to));
    await pause();
  }
  await eventually(() => calls > MOVES, 30_000); // a busy machine is slow
  isOver = true;
  await Promise.all(load);
  expect(wrong).toEqual([]);
  expect([stable, canary, third].map(({ answered }) => answered.length).reduce((sum, count) => sum + count)).toBe(calls);
  expect(third.answered).toEqual([]);
});
