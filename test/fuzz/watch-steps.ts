// What the commands of the model test of watches do.
import { type Command, FAR, NAMESPACES, type Place, RESOURCES } from "./watch-script.ts";
import type { World } from "./watch-world.ts";

type Steps = { readonly [K in Command["do"]]: (step: Extract<Command, { do: K }>) => unknown };

export async function runStep(command: Command, world: World): Promise<void> {
  await stepsOf(world)[command.do](command as never);
  await world.clock.flush();
}

/** Moves end, everything is delivered, and everybody is back. Unknown namespaces stay unknown. */
export async function rest(world: World, rounds: number): Promise<void> {
  const { places, histories, apiServer, clock } = world;
  apiServer.setSlow(false);
  const moving = [...places].filter(([, place]) => place.endsWith("moves"));
  world.move(moving.map(([name, place]) => [name, place.startsWith("mine") ? "own" : "theirs"]));
  for (let round = 0; round < rounds; round++) {
    for (const history of Object.values(histories)) history.tick();
    await clock.advance(2_000);
    for (let index = 0; index < apiServer.openWatches; index++) apiServer.deliver(index, 1_000);
  }
  await clock.advance(2_000);
}

function stepsOf(world: World): Steps {
  const { histories, apiServer, clients, clock } = world;
  const clientOf = (index: number) => clients[index]?.client;
  const move = (namespace: string, place: Place) => {
    if (world.places.get(namespace) === place) return;
    if (place === "unknown") world.empty(namespace);
    world.move([[namespace, place]]);
  };
  const moveFar = () => {
    const far = [...world.places].filter(([name]) => FAR.includes(name));
    world.move(far.map(([name, place]) => [name, place === "own" ? "theirs" : "own"]));
  };
  const writeEverywhere = async (namespaces: readonly string[]) => {
    for (const name of namespaces) for (const resource of RESOURCES) histories[resource].write(name, "x");
    for (let watch = 0; watch < apiServer.openWatches; watch++) apiServer.deliver(watch, 10);
    await clock.flush();
  };
  return {
    write: ({ resource, namespace, name }) => histories[resource].write(namespace, name),
    "own write": ({ resource, namespace, takesMs }) => world.ownWrite(resource, namespace, takesMs),
    remove: ({ resource, namespace, name }) => histories[resource].remove(namespace, name),
    move: ({ namespace, place }) => move(namespace, place),
    "break during a move"({ client, events, namespace, place }) {
      clientOf(client)?.breakAfter(events, 0);
      move(namespace, place);
    },
    async "move after an own write"({ resource, client, namespace, place, takesMs, end }) {
      world.ownWrite(resource, namespace, takesMs);
      move(namespace, place);
      await writeEverywhere(NAMESPACES);
      if (end === "break") clientOf(client)?.breakAfter(0, 0);
      if (end === "kill") world.killProxy("all", 0);
    },
    async "birth after an own write"({ resource, lost, born, existed, isEarly }) {
      if (existed) move(born, "unknown");
      world.ownWrite(resource, lost, 0);
      move(lost, "theirs");
      if (isEarly) await writeEverywhere([born]);
      move(born, "own");
      await writeEverywhere([born]);
    },
    async "break after a move"({ client, namespace, place, isFar }) {
      if (isFar) moveFar();
      else move(namespace, place);
      await clock.flush();
      for (let watch = 0; watch < apiServer.openWatches; watch++) apiServer.deliver(watch, 3);
      clientOf(client)?.breakAfter(0, 0);
    },
    async "move during a list"({ client, namespace, place, killsProxy }) {
      apiServer.setSlow(true);
      clientOf(client)?.forget();
      await clock.flush();
      move(namespace, place);
      apiServer.answerOne();
      await clock.flush();
      if (killsProxy) world.killProxy("all", 0);
      apiServer.setSlow(false);
    },
    "move far": () => moveFar(),
    "give cluster": ({ resource, name, to }) => world.giveCluster(resource, name, to),
    deliver: ({ watch, count }) => apiServer.deliver(watch, count),
    bookmark: ({ watch }) => apiServer.bookmark(watch),
    slow: ({ slow }) => apiServer.setSlow(slow),
    answer: () => apiServer.answerOne(),
    "break now": ({ client, awayMs }) => clientOf(client)?.breakAfter(0, awayMs),
    "break after": ({ client, events, awayMs }) => clientOf(client)?.breakAfter(events, awayMs),
    "break next": ({ client, events }) => clientOf(client)?.breakNextAfter(events),
    "kill proxy": ({ leaves, awayMs }) => world.killProxy(leaves, awayMs),
    start: (start) => world.start(start),
    forget: ({ client }) => clientOf(client)?.forget(),
    list: ({ resource }) => void world.list(resource),
    "server breaks": ({ watch }) => apiServer.breakWatch(watch),
    compact: ({ resource }) => histories[resource].compact(),
    async wait({ ms }) {
      for (const history of Object.values(histories)) history.tick();
      await clock.advance(ms);
    },
  };
}
