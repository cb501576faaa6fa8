// The soak's minutes: each with a move and a reading of what the containers use; at the end, what has grown, restarted or changed hands.

import { MESH_NAMESPACE } from "../support/helm.ts";
import { moveInPlace, onLoss } from "./flows/moves.ts";
import { HOME } from "./flows/operator.ts";
import { describeChange, readUsage, type Usages } from "./usage.ts";
import { podsOf, type World } from "./world.ts";

const MINUTE_MS = 60_000;
/** A line of progress each. */
const REPORT_MINUTES = 5;
/** Beyond the most of the first half. A container's allocator gives memory back late. */
const MAY_GROW = { times: 1.1, megabytes: 8 };
const NAMESPACES = [HOME, MESH_NAMESPACE] as const;
const MESH_CONTAINER = /^(ctrlmesh-proxy|manager) /;

export interface SoakResult {
  /** For the reader. */
  readonly lines: readonly string[];
  /** Empty if all went well. */
  readonly problems: readonly string[];
}

export async function soak(world: World, minutes: number): Promise<SoakResult> {
  await onLoss(world, "InPlace");
  const before = await calmOf(world);
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
  const after = await calmOf(world);
  if (after.leaders !== before.leaders) problems.push(`the locks have changed hands: ${before.leaders}, now ${after.leaders}`);
  for (const namespace of NAMESPACES) {
    if (after[namespace] !== before[namespace]) problems.push(`pods or containers of ${namespace} are new or have restarted`);
  }
  return { lines, problems };
}

/** What stays as it is in a calm mesh, as text: who leads since how many leaders, and the pods with the restarts of their containers. */
async function calmOf(world: World): Promise<Readonly<Record<"leaders" | (typeof NAMESPACES)[number], string>>> {
  const pods = async (namespace: string) => JSON.stringify([...(await podsOf(world, namespace))].sort());
  const path = "jsonpath={range .items[*]}{.metadata.name}={.spec.holderIdentity} ({.spec.leaseTransitions}) {end}";
  const leaders = await world.run("get", "leases", "-n", HOME, "-o", path);
  return { leaders, [HOME]: await pods(HOME), [MESH_NAMESPACE]: await pods(MESH_NAMESPACE) };
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
