// What clients of the proxy may rely on, in the model test of watches. Once the world is quiet, an informer knows exactly its slice, a
// creator what has become of the slice since its own create, and each was shown every event of namespaces that did not move exactly once.
import { expect } from "vitest";
import { type History, keyOf } from "./watch-model/history.ts";
import type { SeenEvent } from "./watch-model/memory.ts";
import { rest } from "./watch-steps.ts";
import type { World } from "./watch-world.ts";

export function expectQuiet({ clients, histories, apiServer, witness, isMine, hides, hasStayed }: World): void {
  expect(witness.problems).toEqual([]);
  expect(apiServer.openWatches).toBe(clients.filter(({ client }) => !client.isOver).length);
  for (const { client, resource } of clients) {
    const { kind, isOver, memory } = client;
    const { state, since = 0 } = memory;
    const history = histories[resource];
    const steady = eventsAfter(history, since).filter((event) => hasStayed(resource, event));
    const seen = memory.events.filter((event) => hasStayed(resource, event));
    expect(seen).toEqual(isOver ? steady.slice(0, seen.length) : steady);
    if (isOver) continue;
    const slice = [...history.stateAt(history.head)].filter(
      ([key, { object }]) => isMine(object.namespace) && !hides(resource, key),
    );
    const wanted = sorted(slice.map(([key, { version }]) => [key, version]));
    // A creator may, but need not, know what was there before.
    const isNeeded = ([key, version]: readonly [string, number]) => kind.begins !== "create" || version > since || state.has(key);
    expect(sorted(state)).toEqual(wanted.filter(isNeeded));
    // Otherwise it would continue from a version from which it has to list again.
    if (kind.takesBookmarks) expect(memory.position).toBe(memory.reached);
  }
}

/**
 * One more namespace moves, with an object of each resource, while everybody watches. Nobody has to list. Gained, the custom resource is
 * shown last; lost, first. Returns whether clients of both resources were shown the move.
 */
export async function expectOrder(world: World, namespace: string): Promise<boolean> {
  for (const { client } of world.clients) client.stay();
  for (const history of Object.values(world.histories)) history.write(namespace, "x");
  await rest(world, 1);
  // Everybody watches from the newest version, so the object is told and does not come with the watch.
  for (let watch = 0; watch < world.apiServer.openWatches; watch++) world.apiServer.bookmark(watch);
  const present = world.clients.filter(({ client }) => client.kind.takesBookmarks && !client.isOver).map(({ client }) => client);
  const lists = present.map(({ memory }) => memory.lists);
  const before = world.witness.shown.length;
  const isGained = !world.isMine(namespace);
  world.move([[namespace, isGained ? "own" : "theirs"]]);
  await rest(world, 4);
  expect(present.map(({ memory }) => memory.lists)).toEqual(lists);
  expect(present.filter(({ isOver }) => isOver)).toEqual([]);
  const order = world.witness.shown.slice(before).flatMap(({ client, resource }) => (present.includes(client) ? [resource] : []));
  expect(order).toEqual([...order].sort((a, b) => (isGained ? 1 : -1) * a.localeCompare(b)));
  return new Set(order).size === 2;
}

/**
 * The pod writes an object of each resource to its namespace, which moves away as soon as the writes are answered. Whoever watches is
 * shown the versions that were written. Returns whether anybody watches.
 */
export async function expectOwnWrites(world: World, namespace: string): Promise<boolean> {
  const { clients, clock, apiServer, witness } = world;
  for (const { client } of clients) client.stay();
  const before = witness.shown.length;
  const written = { pods: world.ownWrite("pods", namespace, 0), widgets: world.ownWrite("widgets", namespace, 0) };
  world.move([[namespace, "theirs"]]);
  await clock.flush();
  for (let watch = 0; watch < apiServer.openWatches; watch++) apiServer.deliver(watch, 10);
  await rest(world, 4);
  const shown = witness.shown.slice(before);
  const present = clients.filter(({ client }) => !client.isOver);
  for (const { client, resource } of present.filter((each) => written[each.resource] !== undefined))
    expect(shown.some((event) => event.client === client && event.version === written[resource])).toBe(true);
  return present.length > 0;
}

function eventsAfter(history: History, version: number): SeenEvent[] {
  const events: SeenEvent[] = [];
  for (let change = history.after(version); change !== undefined; change = history.after(change.version)) {
    const { type, object } = change;
    if (type !== "OTHER") events.push({ type, key: keyOf(object), namespace: object.namespace, version: change.version });
  }
  return events;
}

function sorted(entries: Iterable<readonly [string, number]>): (readonly [string, number])[] {
  return [...entries].sort(([a], [b]) => (a < b ? -1 : 1));
}
