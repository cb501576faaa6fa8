// Schedules of some thirty steps, which the searches of model.test.ts reach too rarely. Each broke a core without the rule in its name.
import { expect, it } from "vitest";
import { DEFAULT_SUBSET } from "../../src/mesh/ownership/table.ts";
import { atRest, withTwoLeaders } from "./calm.ts";
import { expectOneWriter } from "./checks.ts";
import { perform } from "./perform.ts";
import { BLUE } from "./rules.ts";
import { type Step, stepsOf } from "./steps.ts";
import { createWorld, type World } from "./world.ts";

const BEGIN = createWorld({ subsets: [DEFAULT_SUBSET, BLUE], left: { wishes: 3, faults: 4, writes: 1 } });

it("a registration that arrives after that of a newer stream changes nothing", () => {
  const late = ["up 3", "up 2"];
  let world = follow(atRest(BEGIN), [
    "hangs up 1",
    "connect 1 0",
    "up 3",
    "down 3",
    "promise saved 1",
    "hangs up 1",
    "connect 1 0",
  ]);
  world = goOn(follow(goOn(world, late), ["wish 1"]), late);
  follow(world, ["up 3", "wish 0", "plan 0", "down 1"]);
});

it("a leader forgets what proxies had when it leads again after another one", () => {
  let world = goOn(follow(withTwoLeaders(BEGIN), ["wish 0"]));
  world = goOn(follow(world, ["leads again 0", "older ends"]));
  world = goOn(follow(world, ["connect 1 0"]));
  goOn(follow(world, ["wish 1"]));
});

it("a proxy names all routes that came into force since the last that it acknowledged", () => {
  const move = ["wish 1", "plan 0", "down 1", "down 2", "saved 0", "up 1", "plan 0", "saved 1", "up 2", "plan 0", "down 2"];
  let world = follow(atRest(BEGIN), [...move, "write begins 1 a", "wish 0"]);
  for (const stream of [2, 3]) world = goOn(follow(world, [`cut ${stream}`, "connect 1 0"]), ["saved 1"]);
});

it("a process that finds neither routes nor its promise follows no older leader", () => {
  const full = createWorld({ subsets: [DEFAULT_SUBSET, BLUE], left: { wishes: 3, faults: 7, writes: 0 } });
  let world = goOn(follow(atRest(full), ["wish 1"]));
  world = follow(world, [...world.streams.map(({ id }) => `cut ${id}`), "another leader", "time", "connect 0 1", "connect 1 1"]);
  world = goOn(world, ["promise saved 1"]);
  world = goOn(follow(world, ["promise saved 1 refused"]), ["saved 1"]);
  world = goOn(follow(world, ["wish 0", "plan 1"]), ["saved 1"]);
  world = goOn(follow(world, ["saved 1 removed"]), ["saved 1"]);
  world = follow(world, ["crash 1 false", "wish 1"]);
  // The older leader remembers "a" as its place, so would give it back.
  expect(connectionsOf(world)).toEqual([]);
  expect(connectionsOf(follow(world, ["older ends"]))).toEqual(["connect 1 1"]);
});

const connectionsOf = (world: World) => stepsOf(world).flatMap((step) => (step.kind === "connect" ? textOf(step) : []));

const textOf = (step: Step) => Object.values(step).join(" ");

/** Takes these steps, each by the beginning of its text. */
function follow(begin: World, texts: readonly string[]): World {
  return texts.reduce((world, text) => {
    const step = stepsOf(world).find((each) => textOf(each).startsWith(text));
    if (step === undefined) throw new Error(`"${text}" is not possible, but ${stepsOf(world).map(textOf)}`);
    return checked(perform(world, step));
  }, begin);
}

const QUIET: ReadonlySet<Step["kind"]> = new Set(["plan", "up", "down", "saved", "promise saved"]);
const FAULTY = / (removed|failed|refused)$/;

/** Lets everything under way go on, without new connections. @param slow the beginnings of steps that do not come */
function goOn(begin: World, slow: readonly string[] = []): World {
  let world = begin;
  const isNext = (step: Step) => {
    const text = textOf(step);
    return QUIET.has(step.kind) && !FAULTY.test(text) && !slow.some((each) => text.startsWith(each));
  };
  for (let step = stepsOf(world).find(isNext); step !== undefined; step = stepsOf(world).find(isNext))
    world = checked(perform(world, step));
  return world;
}

function checked(world: World): World {
  expectOneWriter(world);
  return world;
}
