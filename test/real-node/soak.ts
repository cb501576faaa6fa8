// The soak's minutes: each with a move and a reading of what the containers use; at the end, what has grown, restarted or changed hands.

import { moveInPlace, onLoss } from "./flows/moves.ts";
import { HOME, leaderOf } from "./flows/operator.ts";
import { describeChange, readUsage, type Usages } from "./usage.ts";
import { podsOf, type World } from "./world.ts";

const MINUTE_MS = 60_000;
/** A line of progress each. */
const REPORT_MINUTES = 5;
/** Beyond the most of the first half. A container's allocator gives memory back late. */
const MAY_GROW = { times: 1.1, megabytes: 8 };
const MESH_CONTAINER = /^(ctrlmesh-proxy|manager) /;

export interface SoakResult {
  /** For the reader. */
  readonly lines: readonly string[];
  /** Empty if all went well. */
  readonly problems: readonly string[];
}

export async function soak(world: World, minutes: number): Promise<SoakResult> {
  await onLoss(world, "InPlace");
  const holders = () => Promise.all([leaderOf(world), leaderOf(world, "foo-operator---v2")]);
  const [podsBefore, holdersBefore] = [await podsOf(world), await holders()];
  const readings: Usages[] = [await readUsage(world)];
  const lines: string[] = [];
  const startedMs = Date.now();
  for (let minute = 1; minute <= minutes; minute++) {
    await moveInPlace(world, minute % 2 === 1 ? "" : "v2");
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, startedMs + minute * MINUTE_MS - Date.now())));
    readings.push(await readUsage(world));
    if (minute % REPORT_MINUTES !== 0 && minute !== minutes) continue;
    const since = Math.max(0, minute - REPORT_MINUTES);
    const change = describeChange(readings[since] ?? new Map(), readings[minute] ?? new Map(), (minute - since) * 60);
    lines.push(`minute ${minute}: ${change.join("; ")}`);
    process.stderr.write(`${lines.at(-1)}\n`);
  }
  const problems = growth(readings);
  const [podsAfter, holdersAfter] = [await podsOf(world), await holders()];
  if (`${holdersAfter}` !== `${holdersBefore}`) problems.push(`the locks went from ${holdersBefore} to ${holdersAfter}`);
  if (JSON.stringify([...podsAfter]) !== JSON.stringify([...podsBefore]))
    problems.push(`containers or pods of ${HOME} have restarted`);
  return { lines, problems };
}

/** Containers of the mesh that use more at the end than the most of the first half allows. */
function growth(readings: readonly Usages[]): string[] {
  const half = readings.slice(0, Math.ceil(readings.length / 2));
  return [...(readings.at(-1) ?? [])].flatMap(([key, { megabytes }]) => {
    if (!MESH_CONTAINER.test(key)) return [];
    const most = Math.max(0, ...half.map((usages) => usages.get(key)?.megabytes ?? 0));
    const bound = most * MAY_GROW.times + MAY_GROW.megabytes;
    return megabytes <= bound
      ? []
      : `${key}: ${megabytes.toFixed(0)} MB at the end, at most ${most.toFixed(0)} MB in the first half`;
  });
}
