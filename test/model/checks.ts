// What must hold in every world, and at every acknowledgement.
import { allows, isAbroad } from "./rules.ts";
import type { ModelProxy, World } from "./world.ts";

/** By place: the subsets that may write there, with the pods by which they may. */
export function writersOf(world: World, place: string): ReadonlyMap<string, readonly string[]> {
  const rights = world.proxies.flatMap((proxy) => {
    const isOver = world.nowMs >= (isAbroad(place) ? proxy.endsAbroadMs : proxy.endsMs);
    const enforced = isOver ? undefined : proxy.enforced;
    // A removed pod's last writes at home have ended, those in another cluster may run on.
    const writes = isOver && !isAbroad(place) ? [] : [...proxy.writes, ...proxy.ghosts];
    const inFlight = writes.filter((write) => write.place === place).map(({ subset }) => subset);
    const subsets = enforced !== undefined && allows(enforced, place) ? [...inFlight, enforced.subset] : inFlight;
    return subsets.map((subset) => [subset, proxy.name] as const);
  });
  const bySubset = Map.groupBy(rights, ([subset]) => subset);
  return new Map([...bySubset].map(([subset, pods]) => [subset, [...new Set(pods.map(([, name]) => name))]]));
}

/** @throws if two subsets may write in one place */
export function expectOneWriter(world: World): void {
  for (const place of world.places) {
    const writers = writersOf(world, place);
    if (writers.size > 1) throw new Error(`two writers in ${place}: ${JSON.stringify([...writers])}`);
  }
}

/** @throws if the routes of a proxy go back to an older version, other than by a restart */
export function expectNewer(world: World, before: World): void {
  for (const [at, { enforced, name }] of world.proxies.entries()) {
    const [older, newer] = [before.proxies[at]?.enforced?.version ?? 0, enforced?.version ?? 0];
    if (newer < older) throw new Error(`the routes of ${name} go back from version ${older} to ${newer}`);
  }
}

/** @throws if a proxy acknowledges too early: see the invariant of src/mesh/link/proxy-routes.ts */
export function expectHeld({ name, routes, enforced, writes, ghosts, disk }: ModelProxy): void {
  const isEnforced = enforced?.version === routes.inForce?.version && enforced?.digest === routes.inForce?.digest;
  if (!isEnforced) throw new Error(`${name} acknowledges what it does not enforce`);
  const refused = [...writes, ...ghosts].filter(({ place }) => !allows(enforced, place));
  if (refused.length > 0) throw new Error(`${name} acknowledges while a write in ${refused[0]?.place} is in flight`);
  if (disk.stored !== undefined && disk.stored.digest !== enforced?.digest)
    throw new Error(`${name} acknowledges what a restart would not restore`);
}
