// Watches through the proxy as a model: namespaces move, are born and go, objects come and change, answers are slow, connections break
// in the middle, the proxy is killed, and clients like client-go's reflector follow. At no step may they be shown what is not their
// subset's, and once the world is quiet each must know exactly its slice. Two clients of one shape are not told apart by the proxy.

import fc from "fast-check";
import { expect, it } from "vitest";
import { createRegistry } from "../../src/base/metrics.ts";
import { createStreamMetrics, type StreamMetrics } from "../../src/proxy/filter/stream-metrics.ts";
import { isolate } from "../../src/proxy/layers/isolate/isolate.ts";
import { createMoveLog } from "../../src/proxy/moves/move-log.ts";
import { createEnforcer } from "../../src/proxy/session/enforcer.ts";
import type { MoveKeeper } from "../../src/proxy/session/session.ts";
import { LOST_MOVES, movesFromContent, movesToContent, type StoredMoves } from "../../src/proxy/session/stored-moves.ts";
import type { Snapshot } from "../../src/route/snapshot.ts";
import { createFakeClock, type FakeClock } from "../support/fake-clock.ts";
import { budget } from "../support/fuzz.ts";
import { isolateDeps } from "../support/isolate.ts";
import { type Routes, routes } from "../support/test-routes.ts";
import { createHistory, type History } from "../support/watch-model/history.ts";
import { type ReflectorKind, startReflector } from "../support/watch-model/reflector.ts";

const NAMESPACES = ["n0", "n1", "n2", "n3", "n4"];
/** Others that never move, so that the API server is asked by ranges of hashes: mine, and theirs. */
const MORE = Array.from({ length: 40 }, (_, index) => `far-${index}`);
type Place = "own" | "theirs" | "mine, moves" | "theirs, moves" | "unknown";

const place = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom<Place>("own", "theirs") },
  { weight: 1, arbitrary: fc.constantFrom<Place>("mine, moves", "theirs, moves", "unknown") },
);
const namespace = fc.constantFrom(...NAMESPACES);
const name = fc.constantFrom("x", "y");
const watch = fc.nat({ max: 3 });
const command = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant("write" as const), namespace, name }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("remove" as const), namespace, name }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("move" as const), namespace, place }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant("deliver" as const), watch, count: fc.integer({ min: 1, max: 6 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("bookmark" as const), watch }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("slow" as const), slow: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("answer" as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("break" as const), client: fc.nat({ max: 1 }), events: fc.nat({ max: 4 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("restart" as const), leaves: fc.constantFrom("all", "all", "lost") }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("second client" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("server breaks" as const), watch }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("compact" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.constantFrom(10, 600, 6_000) }) },
);
type Command = typeof command extends fc.Arbitrary<infer T> ? T : never;

interface Client {
  readonly isWatchList: boolean;
  readonly isLarge: boolean;
}

function routesOf(places: ReadonlyMap<string, Place>): Routes {
  const where = (wanted: (place: Place) => boolean) => [...places].flatMap(([name, place]) => (wanted(place) ? [name] : []));
  return {
    blue: where((place) => place.startsWith("own")),
    defaultSubset: where((place) => place.startsWith("theirs")),
    fenced: where((place) => place.endsWith("moves")),
  };
}

async function play(first: readonly Place[], commands: readonly Command[], { isWatchList, isLarge }: Client) {
  const clock = createFakeClock();
  const history = createHistory();
  const registry = createRegistry("proxy", "test");
  const metrics = createStreamMetrics(registry);
  const places = new Map(NAMESPACES.map((name, index) => [name, first[index] ?? "own"]));
  if (isLarge) for (const [index, name] of MORE.entries()) places.set(name, index % 2 === 0 ? "own" : "theirs");
  let version = 1;
  let proxy = startProxy(clock, metrics, history, undefined);
  const enforce = () => proxy.enforce(routes(version++, routesOf(places)));
  const problems: string[] = [];
  const isMine = (namespace: string) => places.get(namespace) === "own";
  /** Namespaces that have been the subset's. */
  const wereMine = new Set(NAMESPACES.filter(isMine));
  enforce();
  const startClient = (kind: ReflectorKind) =>
    startReflector(
      (call) => proxy.handler(call),
      clock,
      kind,
      ({ type, key, namespace, version: of }) => {
        // What has gone may be told of again, if the client may have known it.
        if (!isMine(namespace) && !(type === "DELETED" && wereMine.has(namespace)))
          problems.push(`${type} ${key} of version ${of} shown, which is ${places.get(namespace)}`);
      },
      (namespaces) => {
        for (const each of namespaces) if (!isMine(each)) problems.push(`${each} listed, which is ${places.get(each)}`);
      },
    );
  const clients = [startClient({ isWatchList, takesBookmarks: true })];
  const restart = (leaves: string) => {
    const { saved } = proxy;
    const last = saved.at(-1);
    // A file that is older than the last routes counts as lost.
    proxy = startProxy(clock, metrics, history, leaves === "lost" || last === undefined ? LOST_MOVES : last.moves);
    if (last !== undefined) proxy.enforce(last.snapshot);
    enforce();
    for (const client of clients) client.breakAfter(0);
  };
  const steps: Readonly<Record<Command["do"], (step: never) => unknown>> = {
    write: (step: { namespace: string; name: string }) => history.write(step.namespace, step.name),
    remove: (step: { namespace: string; name: string }) => history.remove(step.namespace, step.name),
    move(step: { namespace: string; place: Place }) {
      if (places.get(step.namespace) === step.place) return;
      // One that is deleted was empty before.
      if (step.place === "unknown") for (const each of ["x", "y"]) history.remove(step.namespace, each);
      places.set(step.namespace, step.place);
      if (isMine(step.namespace)) wereMine.add(step.namespace);
      enforce();
    },
    deliver: (step: { watch: number; count: number }) => history.deliver(step.watch, step.count),
    bookmark: (step: { watch: number }) => history.bookmark(step.watch),
    slow: (step: { slow: boolean }) => history.setSlow(step.slow),
    answer: () => history.answerOne(),
    break: (step: { client: number; events: number }) => clients[step.client]?.breakAfter(step.events),
    async restart(step: { leaves: string }) {
      // A killed proxy answers nothing any more.
      history.setSlow(false);
      await clock.flush();
      restart(step.leaves);
    },
    "second client"() {
      if (clients.length === 1) clients.push(startClient({ isWatchList: false, takesBookmarks: isWatchList }));
    },
    "server breaks": (step: { watch: number }) => history.breakWatch(step.watch),
    compact: () => history.compact(),
    async wait(step: { ms: number }) {
      history.tick();
      await clock.advance(step.ms);
    },
  };
  for (const step of commands) {
    await steps[step.do](step as never);
    await clock.flush();
  }
  await quiet();
  const slice = [...history.versions()].filter(([key]) => isMine(key.split("/")[0] ?? ""));
  const known = clients.map(({ state }) => new Map([...state].sort()));
  return { problems, known, slice: new Map(slice.sort()), history, registry };

  async function quiet() {
    for (const [name, place] of places) places.set(name, place.startsWith("own") ? "own" : "theirs");
    for (const name of NAMESPACES) if (isMine(name)) wereMine.add(name);
    enforce();
    history.setSlow(false);
    for (let round = 0; round < 12; round++) {
      history.tick();
      await clock.advance(2_000);
      for (let index = 0; index < history.openWatches; index++) history.deliver(index, 1_000);
    }
    await clock.advance(2_000);
  }
}

/** A process of the proxy. `saved` is what it has stored with each of its snapshots, the last at the end. */
function startProxy(clock: FakeClock, metrics: StreamMetrics, history: History, movesBefore: StoredMoves | undefined) {
  const session = createEnforcer();
  let read: () => StoredMoves = () => LOST_MOVES;
  const keeper: MoveKeeper = {
    movesBefore,
    keepMoves(source) {
      read = source;
    },
  };
  const moves = createMoveLog(session, keeper);
  const discovery = { scopeOf: async () => "namespaced" as const };
  const deps = isolateDeps({ session, clock, random: () => 0.5, discovery, moves, metrics });
  const saved: { readonly snapshot: Snapshot; readonly moves: StoredMoves }[] = [];
  const enforce = (snapshot: Snapshot) => {
    session.enforce(snapshot);
    saved.push({ snapshot, moves: movesFromContent(JSON.parse(JSON.stringify(movesToContent(read())))) });
  };
  return { handler: isolate(deps)(history.handler), enforce, saved };
}

it("shows nothing foreign, and all of the slice in the end, whatever happens meanwhile", async () => {
  const totals = { renewed: 0, expired: 0, runs: 0 };
  await fc.assert(
    fc.asyncProperty(
      fc.array(place, { minLength: NAMESPACES.length, maxLength: NAMESPACES.length }),
      fc.array(command, { maxLength: 60, size: "max" }),
      fc.record({ isWatchList: fc.boolean(), isLarge: fc.boolean() }),
      async (first, commands, how) => {
        const { problems, known, slice, history, registry } = await play(first, commands, how);
        expect(problems).toEqual([]);
        for (const each of known) expect(each).toEqual(slice);
        expect(history.openWatches).toBe(known.length);
        const text = await registry.getSingleMetricAsString("ctrlmesh_proxy_watch_renewals_total");
        for (const result of ["renewed", "expired"] as const)
          totals[result] += Number(new RegExp(`result="${result}".* (\\d+)$`, "m").exec(text)?.[1] ?? 0);
        totals.runs++;
      },
    ),
    // A run that hangs would pass as one that the budget has cut off.
    { ...budget(8_000), timeout: 1_500 },
  );
  // A model that never comes to it proves nothing.
  expect(totals.renewed).toBeGreaterThan(totals.runs / 4);
  expect(totals.expired).toBeGreaterThan(0);
}, 60_000);
