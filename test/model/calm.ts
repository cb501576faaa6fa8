// The end of all faults: everything that waits comes to its end, in turn, until nothing is left to do. Then each place must have the
// owner that the rules ask for.
import { expectOneWriter, writersOf } from "./checks.ts";
import { keyOf } from "./manager.ts";
import { WISHES } from "./rules.ts";
import { perform, type Step, stepsOf } from "./steps.ts";
import { leaderOf, type World } from "./world.ts";

/** A proxy that has lost the numbers of its streams five times is late for 50 streams, of some six steps each. */
const MOST_STEPS = 1_000;

/** The world after everything that waits has come to its end. @throws if two subsets may write in one place meanwhile */
export function atRest(busy: World): World {
  return becalm(busy.managers.length > 1 ? perform(busy, { kind: "older ends" }) : busy);
}

/** Every proxy follows another leader, and the one before has not noticed. It remembers the proxies with a place moved. */
export function withTwoLeaders(begin: World): World {
  const moved = becalm(perform(atRest(begin), { kind: "wish", wish: 1 }));
  const faulty = moved.streams.reduce((world, { id }) => perform(world, { kind: "cut", stream: id }), moved);
  return { ...becalm(perform(faulty, { kind: "another leader" })), left: begin.left };
}

function becalm(busy: World): World {
  let world: World = { ...busy, left: { wishes: 0, faults: 0, writes: 0 } };
  for (let steps = 0; steps < MOST_STEPS; steps++) {
    const next = quietStep(world) ?? stepsOf(world).find(({ kind }) => kind === "time");
    if (next === undefined) break;
    world = perform(world, next);
    expectOneWriter(world);
  }
  return { ...world, left: busy.left };
}

/** @throws if a place has not its owner in the end, though pods of that subset are there */
export function expectConverges(faulty: World): void {
  const world = atRest(faulty);
  for (const [index, place] of world.places.entries()) {
    const owner = WISHES[world.wish]?.[index] ?? "";
    const pods = world.proxies.filter(({ subset, isThere }) => isThere && subset === owner).map(({ name }) => name);
    const writers = writersOf(world, place);
    const says = JSON.stringify([...writers]);
    if (JSON.stringify(writers.get(owner) ?? []) !== JSON.stringify(pods))
      throw new Error(`${place} is to be written by ${pods}, not by ${says}`);
  }
  for (const { name, isThere, routes } of world.proxies) {
    const delivery = world.managers[leaderOf(world)]?.records.get(keyOf(name))?.route;
    if (isThere && delivery?.acknowledged?.digest !== routes.inForce?.digest)
      throw new Error(`the manager does not know what ${name} has`);
    if (isThere && routes.retaining !== undefined) throw new Error(`${name} shows what it has lost without end`);
  }
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
