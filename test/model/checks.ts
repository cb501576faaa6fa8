// What must hold in every world, and at every acknowledgement.
import { remember } from "../../src/base/remember.ts";
import { routeDigest } from "../../src/mesh/contract/route-type.ts";
import type { Snapshot } from "../../src/mesh/ownership/snapshot.ts";
import { accessTo } from "./access.ts";
import { isAbroad } from "./rules.ts";
import type { ModelProxy, World, Write } from "./world.ts";

interface Right extends Pick<Write, "isOpen" | "sinceVersion"> {
  readonly subset: string;
  readonly pod: string;
}

/** Who may write in the place, or has writes there that may take effect. */
function rightsIn(world: World, place: string): Right[] {
  return world.proxies.flatMap((proxy) => {
    const isOver = world.nowMs >= (isAbroad(place) ? proxy.endsAbroadMs : proxy.endsMs);
    const enforced = isOver ? undefined : proxy.enforced;
    // A removed pod's last writes at home have ended, those in another cluster may run on.
    const writes = isOver && !isAbroad(place) ? [] : [...proxy.writes, ...proxy.ghosts];
    const inFlight = writes.filter((write) => write.place === place);
    const access = accessTo(enforced, place);
    const now = enforced && access ? [{ routes: enforced, ...access, sinceVersion: proxy.since.get(place) ?? 0 }] : [];
    return [...inFlight, ...now].map(({ routes: { subset }, sinceVersion, isOpen }) => {
      return { subset, sinceVersion, isOpen, pod: proxy.name };
    });
  });
}

/** By subset: the pods by which it may write in the place. */
export function writersOf(world: World, place: string): ReadonlyMap<string, readonly string[]> {
  const bySubset = Map.groupBy(rightsIn(world, place), ({ subset }) => subset);
  return new Map([...bySubset].map(([subset, rights]) => [subset, [...new Set(rights.map(({ pod }) => pod))]]));
}

/** @throws if two subsets may write in one place, unless it was opened to everybody since */
export function expectOneWriter(world: World): void {
  for (const place of world.places) {
    const rights = rightsIn(world, place);
    const hasRival = ({ subset, sinceVersion }: Right) =>
      rights.some((other) => other.subset !== subset && !(other.isOpen && other.sinceVersion > sinceVersion));
    if (rights.some((right) => !right.isOpen && hasRival(right)))
      throw new Error(`two writers in ${place}: ${JSON.stringify(rights)}`);
  }
}

/** @throws if the manager gives a place to a subset while it knows that a pod of another one has it open */
export function expectClosedFirst(world: World, before: World, at: number): void {
  const granted = [...(world.managers[at]?.issue?.snapshots.values() ?? [])];
  for (const { route } of before.managers[at]?.records.values() ?? [])
    for (const held of [route.acknowledged, route.outstanding?.resource, ...route.inDoubt])
      for (const place of world.places.filter((each) => accessTo(held, each)?.isOpen)) {
        const given = granted.find((each) => each.subset !== held?.subset && accessTo(each, place)?.isOpen === false);
        if (given !== undefined) throw new Error(`${place} is open to "${held?.subset}" and given to "${given.subset}"`);
      }
}

/** @throws if routes that count as equal let a pod write to other places */
export function expectSameRules({ name, enforced }: ModelProxy, routes: Snapshot, places: World["places"]): void {
  const other = places.find((place) => accessTo(enforced, place) !== accessTo(routes, place));
  if (other !== undefined) throw new Error(`${name} takes other rules about ${other} for the same`);
}

/** @throws if the routes of a proxy go back to an older version, other than by a restart */
export function expectNewer(world: World, before: World): void {
  for (const [at, { enforced, name }] of world.proxies.entries()) {
    const [older, newer] = [before.proxies[at]?.enforced?.version ?? 0, enforced?.version ?? 0];
    if (newer < older) throw new Error(`the routes of ${name} go back from version ${older} to ${newer}`);
  }
}

const contentOf = remember(routeDigest);

/** @throws if a proxy acknowledges too early: see the invariant of src/mesh/link/proxy-routes.ts */
export function expectHeld({ name, routes, enforced, writes, ghosts, disk }: ModelProxy): void {
  const isEnforced = enforced?.version === routes.inForce?.version && enforced?.digest === routes.inForce?.digest;
  if (!isEnforced) throw new Error(`${name} acknowledges what it does not enforce`);
  // In a cluster that is open again, writes of a killed process rival nobody. Routes that close it wait for them.
  const isOpen = (place: string) => accessTo(enforced, place)?.isOpen === true;
  const counted = [...writes, ...ghosts.filter(({ place, isKnown }) => isKnown || !isOpen(place))];
  const refused = counted.filter(({ place, way }) => accessTo(enforced, place)?.way !== way);
  if (refused.length > 0) throw new Error(`${name} acknowledges while a write in ${refused[0]?.place} is in flight`);
  if (disk.stored !== undefined && contentOf(disk.stored) !== (routes.inForce && contentOf(routes.inForce)))
    throw new Error(`${name} acknowledges what a restart would not restore`);
}
