// The writes of the pods, and what is left of them when their connections are cut.
import type { Snapshot } from "../../src/mesh/ownership/snapshot.ts";
import { accessTo, allowsAll } from "./access.ts";
import { DRAIN_MS, isAbroad } from "./rules.ts";
import { type Ghost, type ModelProxy, proxyAt, type World, type Write, withProxy } from "./world.ts";

export function beginWrite(world: World, at: number, place: string): World {
  const { enforced, since, writes } = proxyAt(world, at);
  const access = accessTo(enforced, place);
  if (enforced === undefined || access === undefined) return world;
  const sinceVersion = since.get(place) ?? enforced.version;
  return withProxy(world, at, { writes: [...writes, { place, ...access, routes: enforced, sinceVersion }] });
}

/** Lets the routes judge new writes. Connections to other clusters that they refuse are cut. */
export function enforce(world: World, at: number, routes: Snapshot): World {
  const { enforced, since } = proxyAt(world, at);
  const next = world.places.flatMap((place) => {
    const access = accessTo(routes, place);
    if (access === undefined) return [];
    const before = accessTo(enforced, place) === access ? since.get(place) : undefined;
    return [[place, before ?? routes.version] as const];
  });
  const isCut = ({ place, way }: Write) => way === "tunnel" && accessTo(routes, place)?.way !== way;
  return cutTunnels(withProxy(world, at, { enforced: routes, since: new Map(next) }), at, isCut);
}

/** Cuts connections to other clusters, whose API servers may work on the writes for a while. */
export function cutTunnels(world: World, at: number, isCut: (write: Write) => boolean): World {
  const { writes, ghosts } = proxyAt(world, at);
  const [lost, kept] = [true, false].map((is) => writes.filter((write) => (isAbroad(write.place) && isCut(write)) === is));
  const added = (lost ?? []).map((write) => ({ ...write, untilMs: world.nowMs + DRAIN_MS, isKnown: true }));
  return added.length === 0 ? world : withProxy(world, at, { writes: kept ?? [], ghosts: [...ghosts, ...added] });
}

/** True if the proxy waits for the end of refused writes, and no write that it knows of is one. */
export function isDrained({ isDraining, writes, ghosts, enforced }: ModelProxy): boolean {
  return isDraining && allowsAll(enforced, [...writes, ...ghosts.filter(({ isKnown }) => isKnown)]);
}

/** How long the API server may carry out writes of a killed process. Not the constant of the core, which could be wrong. */
const INHERITED_MS = 10_000;

/** What the API servers may still carry out when the process has been killed. */
export function leftByKill(world: World, at: number): Ghost[] {
  const { writes, ghosts } = proxyAt(world, at);
  const untilMs = (place: string) => world.nowMs + (isAbroad(place) ? DRAIN_MS : INHERITED_MS);
  return [
    ...ghosts.map((ghost) => ({ ...ghost, isKnown: false })),
    ...writes.map((write) => ({ ...write, untilMs: untilMs(write.place), isKnown: false })),
  ];
}
