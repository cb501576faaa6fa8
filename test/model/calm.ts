// The end of all faults: everything that waits comes to its end, in turn, until nothing is left to do.
import { expectOneWriter } from "./checks.ts";
import { perform } from "./perform.ts";
import { type Step, stepsOf } from "./steps.ts";
import { leaderOf, type World } from "./world.ts";

/** A proxy that has lost the numbers of its streams five times is late for 50 streams, of some six steps each. */
const MOST_STEPS = 1_000;

/**
 * The world after everything that waits has come to its end.
 * @param untilMs nothing that comes later happens
 * @throws if two subsets may write in one place meanwhile
 */
export function atRest(busy: World, untilMs?: number): World {
  const faultless = busy.managers.length > 1 ? perform(busy, { kind: "older ends" }) : busy;
  return becalm({ ...faultless, pause: "none", knowsInside: true }, untilMs);
}

/** Every proxy follows another leader, and the one before has not noticed. It remembers the proxies with a place moved. */
export function withTwoLeaders(begin: World): World {
  const moved = becalm(perform(atRest(begin), { kind: "wish", wish: 1 }));
  return { ...withNewLeader(moved), left: begin.left };
}

/** All streams were cut, and another leader has heard of every proxy. */
export function withNewLeader(begin: World): World {
  const faulty = begin.streams.reduce((world, { id }) => perform(world, { kind: "cut", stream: id }), begin);
  return becalm(perform(faulty, { kind: "another leader" }));
}

/** The same with whatever is paused or not known. */
export function becalm(busy: World, untilMs = Number.POSITIVE_INFINITY): World {
  let world: World = { ...busy, left: { wishes: 0, faults: 0, writes: 0 } };
  for (let steps = 0; steps < MOST_STEPS; steps++) {
    const next = quietStep(world) ?? stepsOf(world).find((step) => step.kind === "time" && step.toMs <= untilMs);
    if (next === undefined) break;
    world = perform(world, next);
    expectOneWriter(world);
  }
  return { ...world, left: busy.left };
}

/** What goes on by itself, without a fault and without time. */
const QUIET: ReadonlySet<Step["kind"]> = new Set(["plan", "up", "down", "saved", "promise saved", "write ends"]);

function quietStep(world: World): Step | undefined {
  const leader = leaderOf(world);
  return stepsOf(world).find((step) => {
    if (step.kind === "connect") return step.manager === leader && world.proxies[step.proxy]?.isThere === true;
    return QUIET.has(step.kind);
  });
}
