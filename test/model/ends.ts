// What must hold when all faults have ended: each place gets the owner that the rules ask for, in time, and keeps it while nothing is
// to move.
import { atRest, becalm, withNewLeader } from "./calm.ts";
import { writersOf } from "./checks.ts";
import { keyOf } from "./manager.ts";
import { DRAIN_MS, hasInside, namespaceInside, wishesFor, writersBy } from "./rules.ts";
import { leaderOf, type World } from "./world.ts";

/** The docs promise 20 s and `drainSeconds` after a removal by force, which is the longest wait; a save that failed is tried again in 1 s. */
const LONGEST_MS = 21_000 + DRAIN_MS;

/** @throws if a place has not its owner in the end, though pods of that subset are there */
export function expectConverges(faulty: World): void {
  const soon = atRest(faulty, faulty.nowMs + LONGEST_MS);
  expectOwners(soon);
  const world = atRest(soon);
  expectOwners(world);
  for (const { name, isThere, routes } of world.proxies) {
    const delivery = world.managers[leaderOf(world)]?.records.get(keyOf(name))?.route;
    if (isThere && delivery?.acknowledged?.digest !== routes.inForce?.digest)
      throw new Error(`the manager does not know what ${name} has`);
    if (isThere && routes.retaining !== undefined) throw new Error(`${name} shows what it has lost without end`);
  }
  if (hasInside(world.places) && ["Terminate", "Tunnel"].includes(wishOf(world).cluster)) expectStays(world);
}

function wishOf({ places, wish }: World) {
  const wanted = wishesFor(places)[wish];
  if (wanted === undefined) throw new Error(`there is no wish ${wish}`);
  return wanted;
}

function expectOwners(world: World): void {
  for (const [index, place] of world.places.entries()) {
    const writers = Object.fromEntries(writersOf(world, place));
    const wanted = writersBy(wishOf(world), place, index).map((owner) => [owner, podsOf(world, place, owner)] as const);
    const expected = Object.fromEntries(wanted.filter(([, pods]) => pods.length > 0));
    expectSame(writers, expected, place);
  }
}

/** Those of the owner that can write in the place. An old proxy closes a cluster whose requests others serve. */
function podsOf(world: World, place: string, owner: string): string[] {
  const isServed = namespaceInside(place) !== undefined && wishOf(world).cluster === "Terminate";
  return world.proxies
    .filter((each) => each.isThere && each.subset === owner && !(isServed && each.isOld))
    .map(({ name }) => name);
}

/** While the namespaces of the cluster are not known, or everything is paused, all owners stay: also with a new leader. */
function expectStays(world: World): void {
  const now = wishOf(world).cluster;
  const other = wishesFor(world.places).findIndex(
    ({ cluster, owners }, wish) => cluster === now && wish !== world.wish && !owners.includes(undefined),
  );
  const unknown: World = { ...world, knowsInside: false };
  const paused: World = { ...world, pause: "all", wish: other };
  const places = world.places.filter((place) => writersOf(world, place).size > 0);
  for (const quiet of [unknown, paused]) {
    const planned = becalm(quiet);
    for (const later of [planned, withNewLeader({ ...planned, left: { ...planned.left, faults: 1 + planned.streams.length } })])
      for (const place of places)
        expectSame(writersIn(later, place), writersIn(world, place), `${place} (${quiet.pause} paused)`);
  }
}

const writersIn = (world: World, place: string) => Object.fromEntries(writersOf(world, place));

function expectSame(writers: object, wanted: object, place: string): void {
  const sorted = (of: object) => JSON.stringify(Object.entries(of).sort());
  if (sorted(writers) !== sorted(wanted))
    throw new Error(`${place} is to be written by ${JSON.stringify(wanted)}, not by ${JSON.stringify(writers)}`);
}
