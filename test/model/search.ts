// Two ways through the worlds of a model: every order of steps from a small beginning, or random orders from a larger one.
import { createHash } from "node:crypto";
import { expectClosedFirst, expectNewer, expectOneWriter } from "./checks.ts";
import { expectConverges } from "./ends.ts";
import { fingerprint } from "./fingerprint.ts";
import { perform } from "./perform.ts";
import { type Step, stepsOf } from "./steps.ts";
import type { World } from "./world.ts";

/** @throws Error with the steps that led to the failure */
function stepChecked(world: World, step: Step, path: () => readonly Step[]): World {
  try {
    const next = perform(world, step);
    expectOneWriter(next);
    if (step.kind === "plan") expectClosedFirst(next, world, step.manager);
    if (step.kind !== "crash" && step.kind !== "other version") expectNewer(next, world);
    return next;
  } catch (cause) {
    throw new Error(`${(cause as Error).message}, after${textOf([...path(), step])}`, { cause });
  }
}

interface Visited {
  readonly world: World;
  readonly step: Step | undefined;
  readonly from: Visited | undefined;
}

export interface Exhausted {
  readonly worlds: number;
  /** Every world that can be reached was visited. */
  readonly isWhole: boolean;
}

/**
 * Visits the worlds breadth-first, so that a failure has the fewest steps. With faults of one kind, the worlds of one move are few
 * enough to visit all.
 * @param convergeEach every n-th world is brought to rest
 * @param faults the faults that may happen
 */
export function exhaust(
  first: World,
  {
    untilMs,
    convergeEach,
    faults,
  }: { readonly untilMs: number; readonly convergeEach: number; readonly faults: readonly Step["kind"][] },
): Exhausted {
  const seen = new Set([hashOf(first)]);
  let level: Visited[] = [{ world: first, step: undefined, from: undefined }];
  while (level.length > 0) {
    const next: Visited[] = [];
    for (const visited of level) {
      if (performance.now() > untilMs) return { worlds: seen.size, isWhole: false };
      for (const step of stepsOf(visited.world)) {
        const world = stepChecked(visited.world, step, () => pathTo(visited));
        if (world.left.faults < visited.world.left.faults && !faults.includes(step.kind)) continue;
        const hash = hashOf(world);
        if (seen.has(hash)) continue;
        seen.add(hash);
        const reached = { world, step, from: visited };
        if (seen.size % convergeEach === 0) convergeChecked(world, () => pathTo(reached));
        next.push(reached);
      }
    }
    level = next;
  }
  return { worlds: seen.size, isWhole: true };
}

/** Millions of worlds are remembered. */
function hashOf(world: World): string {
  return createHash("sha1").update(fingerprint(world)).digest("base64");
}

function pathTo(visited: Visited): Step[] {
  const path: Step[] = [];
  for (let at: Visited | undefined = visited; at?.step !== undefined; at = at.from) path.unshift(at.step);
  return path;
}

function convergeChecked(world: World, path: () => readonly Step[]): void {
  try {
    expectConverges(world);
  } catch (cause) {
    throw new Error(`${(cause as Error).message}, at rest after${textOf(path())}`, { cause });
  }
}

function textOf(path: readonly Step[]): string {
  return path.map(({ kind, ...rest }) => `\n  ${kind} ${Object.values(rest).join(" ")}`).join("");
}

/** Takes random steps from the beginning, and then brings the world to rest. Returns the number of steps. */
export function wander(first: World, length: number, random: () => number): number {
  const path: Step[] = [];
  let weightOf = createWeights(random);
  let world = first;
  while (path.length < length) {
    if (random() < NEW_WEIGHTS) weightOf = createWeights(random);
    const step = choose(stepsOf(world), weightOf, random);
    if (step === undefined) break;
    world = stepChecked(world, step, () => path);
    path.push(step);
  }
  convergeChecked(world, () => path);
  return path.length;
}

/** Faults come rarely, so that something is under way when they come. */
const RARE: ReadonlySet<Step["kind"]> = new Set([
  "wish",
  "pause",
  "crash",
  "other version",
  "write breaks",
  "namespaces unknown",
  "hangs up",
  "cut",
  "another leader",
  "leads again",
  "no room",
  "gate changes",
  "older ends",
  "removed by force",
  "time",
]);

/** How likely new weights are before a step: the second save may be slow where the first was not. */
const NEW_WEIGHTS = 0.08;

/**
 * How likely each kind of step is for a while, for each pod and stream. The weights differ widely, since most failures need some steps
 * often and others late or never: a slow stream, a full disk (Groce et al., Swarm Testing, 2012).
 */
function createWeights(random: () => number): (step: Step) => number {
  const weights = new Map<string, number>();
  return (step) => {
    const [kind, subject] = Object.values(step);
    const key = `${kind} ${subject}`;
    const weight = weights.get(key) ?? 4 ** (-4 * random() - (RARE.has(step.kind) ? 1 : 0));
    weights.set(key, weight);
    return weight;
  };
}

function choose(steps: readonly Step[], weightOf: (step: Step) => number, random: () => number): Step | undefined {
  const total = steps.reduce((sum, step) => sum + weightOf(step), 0);
  let left = random() * total;
  for (const step of steps) {
    left -= weightOf(step);
    if (left < 0) return step;
  }
  return steps.at(-1);
}
