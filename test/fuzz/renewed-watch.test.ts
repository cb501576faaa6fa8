// Watches through the proxy as a model: namespaces move, are born and go, objects come and change, answers are slow, connections break
// in the middle, and a client like client-go's reflector follows. At no step may it be shown what is not its subset's, and once the
// world is quiet it must know exactly its slice.

import fc from "fast-check";
import { expect, it } from "vitest";
import { createRegistry } from "../../src/base/metrics.ts";
import { isolate } from "../../src/proxy/layers/isolate/isolate.ts";
import { createEnforcer } from "../../src/proxy/session/enforcer.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { budget } from "../support/fuzz.ts";
import { isolateDeps } from "../support/isolate.ts";
import { type Routes, routes } from "../support/test-routes.ts";
import { createHistory } from "../support/watch-model/history.ts";
import { startReflector } from "../support/watch-model/reflector.ts";

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
  { weight: 1, arbitrary: fc.record({ do: fc.constant("break" as const), events: fc.nat({ max: 4 }) }) },
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
  const session = createEnforcer();
  const history = createHistory();
  const registry = createRegistry("proxy", "test");
  const discovery = { scopeOf: async () => "namespaced" as const };
  const handler = isolate(isolateDeps({ session, clock, registry, random: () => 0.5, discovery }))(history.handler);
  const places = new Map(NAMESPACES.map((name, index) => [name, first[index] ?? "own"]));
  if (isLarge) for (const [index, name] of MORE.entries()) places.set(name, index % 2 === 0 ? "own" : "theirs");
  let version = 1;
  const enforce = () => session.enforce(routes(version++, routesOf(places)));
  const problems: string[] = [];
  const isMine = (namespace: string) => places.get(namespace) === "own";
  /** Whose a namespace was before it was deleted. */
  const placesBefore = new Map<string, Place>();
  enforce();
  const client = startReflector(
    handler,
    isWatchList,
    ({ type, key, namespace, version: of }, before) => {
      // What goes may be told of, as the client knows it already; and what went with its namespace, by whose that was.
      const isKnown = type === "DELETED" && (before.get(key) ?? 0) >= of;
      const isLast = type === "DELETED" && places.get(namespace) === "unknown" && placesBefore.get(namespace) === "own";
      if (!isMine(namespace) && !isKnown && !isLast)
        problems.push(`${type} ${key} of version ${of} shown, which is ${places.get(namespace)}`);
    },
    (namespaces) => {
      for (const each of namespaces) if (!isMine(each)) problems.push(`${each} listed, which is ${places.get(each)}`);
    },
  );
  const steps: Readonly<Record<Command["do"], (step: never) => unknown>> = {
    write: (step: { namespace: string; name: string }) => history.write(step.namespace, step.name),
    remove: (step: { namespace: string; name: string }) => history.remove(step.namespace, step.name),
    move(step: { namespace: string; place: Place }) {
      if (places.get(step.namespace) === step.place) return;
      // One that is deleted was empty before.
      if (step.place === "unknown") for (const each of ["x", "y"]) history.remove(step.namespace, each);
      placesBefore.set(step.namespace, places.get(step.namespace) ?? "unknown");
      places.set(step.namespace, step.place);
      enforce();
    },
    deliver: (step: { watch: number; count: number }) => history.deliver(step.watch, step.count),
    bookmark: (step: { watch: number }) => history.bookmark(step.watch),
    slow: (step: { slow: boolean }) => history.setSlow(step.slow),
    answer: () => history.answerOne(),
    break: (step: { events: number }) => client.breakAfter(step.events),
    "server breaks": (step: { watch: number }) => history.breakWatch(step.watch),
    compact: () => history.compact(),
    wait: (step: { ms: number }) => clock.advance(step.ms),
  };
  for (const step of commands) {
    await steps[step.do](step as never);
    await clock.flush();
  }
  await quiet();
  const slice = [...history.versions()].filter(([key]) => isMine(key.split("/")[0] ?? ""));
  return { problems, known: new Map([...client.state].sort()), slice: new Map(slice.sort()), history, client, registry };

  async function quiet() {
    for (const [name, place] of places) places.set(name, place.startsWith("own") ? "own" : "theirs");
    enforce();
    history.setSlow(false);
    for (let round = 0; round < 12; round++) {
      await clock.advance(2_000);
      for (let index = 0; index < history.openWatches; index++) history.deliver(index, 1_000);
    }
    await clock.advance(2_000);
  }
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
        expect(known).toEqual(slice);
        expect(history.openWatches).toBe(1);
        const text = await registry.getSingleMetricAsString("ctrlmesh_proxy_watch_renewals_total");
        for (const result of ["renewed", "expired"] as const)
          totals[result] += Number(new RegExp(`result="${result}".* (\\d+)$`, "m").exec(text)?.[1] ?? 0);
        totals.runs++;
      },
    ),
    budget(8_000),
  );
  // A model that never comes to it proves nothing.
  expect(totals.renewed).toBeGreaterThan(totals.runs / 4);
  expect(totals.expired).toBeGreaterThan(0);
}, 60_000);
