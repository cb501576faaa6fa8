// What a pod retains of its own writes, under any sequence of route tables: it is readable only, was shown before, was written to, goes in the
// end, and whatever clients are shown or no longer shown is a move that they are sent.
import fc from "fast-check";
import { expect, it } from "vitest";
import { BUCKETS, CLUSTER_SCOPE } from "../../src/kube/place.ts";
import { NO_ROUTES, type ProxyRoutes, type RoutesEvent, stepRoutes } from "../../src/mesh/link/proxy-routes.ts";
import { movesBetween } from "../../src/mesh/moves/moves-between.ts";
import { type Enforced, enforced } from "../../src/mesh/ownership/enforced.ts";
import { readViewOf, type Snapshot } from "../../src/mesh/ownership/snapshot.ts";
import type { RouteRule } from "../../src/mesh/ownership/table.ts";
import { budget } from "../support/fuzz.ts";
import { fence, group, limit, objects, sharded, snapshot, subset, table } from "../support/route-table.ts";

const NAMESPACES = ["ant", "bee", "cow", "dog"];
const TARGETS = [
  { group: "apps", resource: "deployments" },
  { group: "", resource: "pods" },
  { group: "example.io", resource: "widgets" },
];
const match = fc.constantFrom(group("apps"), group("example.io", "widgets"), group("", "pods"));
const rule: fc.Arbitrary<RouteRule> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .record({ name: fc.constantFrom("blue", "green"), of: fc.option(match) })
      .map(({ name, of }) => (of === null ? subset(name) : subset(name, of))),
  },
  { weight: 1, arbitrary: match.map((of) => limit(of)) },
  { weight: 1, arbitrary: match.map((of) => fence(of)) },
  { weight: 1, arbitrary: match.map((of) => objects("blue", "a=b", of)) },
);
const members = (places: readonly string[]) =>
  fc.array(fc.option(fc.array(fc.nat({ max: 4 }), { maxLength: 3 }), { freq: 6 }), {
    minLength: places.length,
    maxLength: places.length,
  });
const BUCKET_SAMPLE = ["#1", "#2", "#3"];

const tables = (hasScope: boolean) =>
  fc.record({
    isSharded: fc.boolean(),
    rules: fc.array(rule, { minLength: 1, maxLength: 4 }),
    sharedResources: fc.option(match),
    places: members(NAMESPACES),
    fenced: fc.subarray(NAMESPACES),
    scope: fc.nat({ max: 4 }),
    buckets: hasScope ? fc.option(members(BUCKET_SAMPLE)) : fc.constant(null),
    subset: fc.constantFrom("blue", "blue", "blue", ""),
  });
type Choice = typeof tables extends (hasScope: boolean) => fc.Arbitrary<infer T> ? T : never;

function routesOf(version: number, choice: Choice): Snapshot {
  const rules = [...(choice.isSharded ? [sharded(group("apps"), group("example.io"))] : []), ...choice.rules];
  const known = (row: readonly number[] | null) =>
    [...new Set(row ?? [])].filter((at) => at < rules.length && at >= (choice.isSharded ? 1 : 0)).sort();
  const entries = NAMESPACES.flatMap((name, at) =>
    choice.places[at] == null ? [] : [[name, known(choice.places[at])] as const],
  );
  const scope = choice.isSharded ? [[CLUSTER_SCOPE, known([choice.scope])] as const] : [];
  const buckets =
    choice.isSharded && choice.buckets
      ? BUCKETS.map((place) => [place, known(choice.buckets?.[BUCKET_SAMPLE.indexOf(place)] ?? [1])] as const)
      : [];
  const fenced = choice.fenced.filter((name) => entries.some(([known]) => known === name));
  const shared = choice.sharedResources === null ? {} : { sharedResources: [choice.sharedResources] };
  return snapshot(table(rules, Object.fromEntries([...scope, ...buckets, ...entries]), { fenced, ...shared }), {
    version,
    digest: `d${version}`,
    subset: choice.subset,
  });
}

const step = (hasScope: boolean) =>
  fc.record({
    routes: fc.oneof({ weight: 3, arbitrary: tables(hasScope) }, { weight: 2, arbitrary: fc.constant("previous" as const) }),
    written: fc.subarray([...NAMESPACES, ...(hasScope ? [CLUSTER_SCOPE, ...BUCKET_SAMPLE] : [])]),
    end: fc.constantFrom("shown", "drained", "nothing"),
  });

const isReadable = (of: Enforced, target: (typeof TARGETS)[number], place: string) =>
  readViewOf(of.view(target.group, target.resource)).ownershipOf(place);

function check(before: Enforced | undefined, now: Enforced, inForce: Snapshot, isRetaining: boolean, hasScope: boolean) {
  const plain = enforced(inForce);
  const places = [...NAMESPACES, ...(hasScope ? BUCKETS : [])];
  for (const target of TARGETS) {
    for (const place of [...places, CLUSTER_SCOPE]) {
      const [view, plainView] = [now, plain].map((each) => each.view(target.group, target.resource));
      // Writes go by the routes in force.
      expect(view?.ownershipOf(place)).toBe(plainView?.ownershipOf(place));
      const extra = isReadable(now, target, place) === "own" && isReadable(plain, target, place) !== "own";
      if (extra) expect(before && isReadable(before, target, place)).toBe("own");
      if (extra) expect(isRetaining).toBe(true);
    }
    if (before === undefined) continue;
    const { isEverything, moved, born, departed } = movesBetween(before, now).of(target);
    if (isEverything || moved === undefined) continue;
    for (const place of places) {
      const [was, is] = [isReadable(before, target, place), isReadable(now, target, place)];
      if ((was === "own") === (is === "own")) continue;
      const isTold = moved.includes(place) || born.has(place) || departed.includes(place);
      expect({ target, place, was, is, isTold }).toEqual({ target, place, was, is, isTold: true });
    }
  }
}

it.each([
  { what: "namespaces", hasScope: false, writes: true },
  { what: "also the cluster scope and buckets, without any write (how it was before)", hasScope: true, writes: false },
  { what: "also the cluster scope and buckets", hasScope: true, writes: true },
])("$what", ({ hasScope, writes }) => {
  fc.assert(
    fc.property(fc.array(step(hasScope), { minLength: 2, maxLength: 8 }), (steps) => {
      let state: ProxyRoutes = NO_ROUTES;
      let shown: Enforced | undefined;
      let version = 0;
      const choices: Choice[] = [];
      const enter = (event: RoutesEvent) => {
        const next = stepRoutes(state, event, 0);
        state = next.state;
        for (const effect of next.effects) {
          if (effect.kind !== "enforce") continue;
          const now = enforced(effect.routes);
          if (state.inForce !== undefined) check(shown, now, state.inForce, state.retaining !== undefined, hasScope);
          shown = now;
        }
      };
      for (const each of steps) {
        const choice = each.routes === "previous" ? choices.at(-2) : each.routes;
        if (choice === undefined) continue;
        choices.push(choice);
        const written = new Set(writes ? each.written : []);
        enter({ kind: "update", update: ++version, routes: routesOf(version, choice), written });
        if (!writes) expect(state.retaining).toBeUndefined();
        if (each.end === "nothing") continue;
        enter({ kind: "drained" });
        if (each.end === "drained") continue;
        enter({ kind: "own-writes-shown" });
        expect(state.retaining).toBeUndefined();
        expect(shown?.snapshot.table.retained).toBeUndefined();
      }
    }),
    budget(8_000),
  );
});
