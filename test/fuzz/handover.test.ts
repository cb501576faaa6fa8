// Model test of the handover: any order of route changes, undos, pauses, deletion of the app, deliveries, acknowledgements, pod births,
// deaths and changes of subset, and failovers of the manager, beside pods that have no proxy. At no step may a subset hold an object
// (resource, namespace, labels) that another one holds, unless both share it; a pod that shows something never writes it, and loses
// sight of nothing while it is to go on showing; nothing stops that nothing is about; once the world is quiet it converges.
import fc from "fast-check";
import { expect, it } from "vitest";
import { CLUSTER_SCOPE } from "../../src/kube/place.ts";
import { NO_REPORTS } from "../../src/mesh/contract/messages.ts";
import type { AppPod } from "../../src/mesh/handover/app-pod.ts";
import { podClaims } from "../../src/mesh/handover/claims.ts";
import { type Issue, nextIssue } from "../../src/mesh/handover/issue.ts";
import { tableInForce } from "../../src/mesh/handover/paused.ts";
import { type AppPlan, planApp } from "../../src/mesh/handover/plan-app.ts";
import { isDissolved, planDissolution } from "../../src/mesh/handover/plan-dissolution.ts";
import { type FactsOf, type ProxyFacts, podKey } from "../../src/mesh/handover/proxy-facts.ts";
import { NO_CALLER_POLICY } from "../../src/mesh/ownership/snapshot.ts";
import { isSharded, namespacesOf, type ResourceMatch, type RouteRule, type RouteTable } from "../../src/mesh/ownership/table.ts";
import { FUZZ_SEED, shareOf } from "../support/fuzz.ts";
import { group, limit, objectLimit, objects, sharded, subset, tableToJson } from "../support/route-table.ts";
import {
  CLUSTER_PLACES,
  expectKept,
  expectNoNeedlessStop,
  expectNothingLost,
  expectNothingVanishes,
  expectOneOwner,
  expectShownIsNotWritten,
  expectWhole,
  NAMESPACES,
  type Pod,
  SUBSETS,
} from "./handover-checks.ts";

const MAPS = group("", "configmaps");
const SECRETS = group("", "secrets");
const ALL = group("*");

const APP = { namespace: "shop", name: "app" };

interface World {
  readonly pods: Map<number, Pod>;
  /** The tables that the spec asked for, the newest last: for undos. */
  readonly specs: RouteTable[];
  bySpec: RouteTable;
  onLoss: "Restart" | "InPlace";
  isPaused: boolean;
  isDeleting: boolean;
  /** When the deletion began, all pods agreed about resources that move as a whole. */
  isAgreed: boolean;
  /** What the manager remembers, and what it has written. */
  issue: Issue | undefined;
  statusVersion: number;
  /** As in the status. */
  ownersHashes: readonly string[] | undefined;
}

const rules = fc.array(
  fc.oneof(
    fc.constantFrom("canary", "beta").map((name): RouteRule => subset(name)),
    fc.constantFrom("canary", "beta").map((name): RouteRule => subset(name, MAPS)),
    fc.constant(limit()),
    fc
      .tuple(
        fc.constantFrom("canary", "beta"),
        fc.constantFrom("t=x", "t!=x", "u", "!u"),
        fc.constantFrom([MAPS], [MAPS, SECRETS], [MAPS], [group("", "configmaps", "secrets")], [ALL]),
      )
      .map(([name, term, resources]) => objects(name, term, ...resources)),
    fc.constant(objectLimit("t", MAPS)),
  ),
  { maxLength: 3 },
);
const publics = fc.constantFrom([], [], [], [MAPS], [SECRETS], [group("", "secrets", "configmaps")], [group("")]);
// Of a sharded family: shards come and go, and the cluster scope moves.
const named = fc.constantFrom<ResourceMatch[]>(
  [MAPS],
  [MAPS],
  [MAPS],
  [MAPS, SECRETS],
  [SECRETS, MAPS],
  [SECRETS],
  [ALL],
  [group("")],
);
const shards = fc.array(
  fc
    .tuple(fc.constantFrom("canary", "beta"), fc.constantFrom<ResourceMatch[]>([], [], [MAPS], [SECRETS, MAPS]))
    .map(([name, resources]): RouteRule => subset(name, ...resources)),
  { minLength: 1, maxLength: 3 },
);
const family = fc
  .tuple(named, shards, fc.constantFrom([], [], [limit()], [objectLimit("t", MAPS)]))
  .map(([resources, list, limits]): RouteRule[] => [sharded(...resources), ...limits, ...list]);
const BUCKETS = CLUSTER_PLACES.slice(1, 3);
/** Every namespace, the cluster scope and two buckets, at the places of their classes. */
const PLACES = [...NAMESPACES, CLUSTER_SCOPE, ...BUCKETS];
const tablesOf = (lists: fc.Arbitrary<RouteRule[]>) =>
  fc.tuple(lists, publics).chain(([list, sharedResources]) =>
    fc
      .array(fc.subarray(list.map((_, index) => index)), { minLength: PLACES.length, maxLength: PLACES.length })
      .chain((classes) =>
        fc.tuple(fc.subarray(NAMESPACES, { minLength: 1 }), fc.boolean()).map(([known, isByName]): RouteTable => {
          const table: RouteTable = {
            rules: list,
            // Rules on labels contain no namespace.
            classes: classes.map((row) => row.filter((index) => list[index]?.kind === "limit" || list[index]?.kind === "subset")),
            classOf: new Map(),
            sharedResources,
            fenced: new Set(),
          };
          return withPlaces(table, known, isByName);
        }),
      ),
  );
const BARE = 5;
const of = <K extends string>(kind: K) => fc.record({ kind: fc.constant(kind), pod: fc.nat(5) });
const subsets = fc.constantFrom(...SUBSETS);
const stepsOf = (tables: fc.Arbitrary<RouteTable>) =>
  fc.array(
    fc.oneof(
      { weight: 12, arbitrary: tables.map((table) => ({ kind: "spec" as const, table })) },
      { weight: 6, arbitrary: fc.constant({ kind: "undo" as const }) },
      {
        weight: 3,
        arbitrary: fc.constantFrom("Restart" as const, "InPlace" as const).map((onLoss) => ({ kind: "mode" as const, onLoss })),
      },
      { weight: 6, arbitrary: fc.boolean().map((isPaused) => ({ kind: "pause" as const, isPaused })) },
      { weight: 42, arbitrary: of("deliver") },
      { weight: 18, arbitrary: of("reports") },
      {
        weight: 9,
        arbitrary: fc.record({
          kind: fc.constant("born" as const),
          pod: fc.nat(5),
          subset: subsets,
          controlled: fc.boolean(),
          late: fc.boolean(),
        }),
      },
      { weight: 6, arbitrary: fc.record({ kind: fc.constant("moves" as const), pod: fc.nat(5), subset: subsets }) },
      { weight: 6, arbitrary: of("dies") },
      { weight: 6, arbitrary: fc.nat(63).map((taken) => ({ kind: "failover" as const, taken })) },
      { weight: 2, arbitrary: fc.constant({ kind: "statuses are written" as const }) },
      { weight: 1, arbitrary: fc.constant({ kind: "delete" as const }) },
    ),
    { minLength: 10, maxLength: 100, size: "large" },
  );
type Step = ReturnType<typeof stepsOf> extends fc.Arbitrary<readonly (infer S)[]> ? S : never;
const scriptsOf = (lists: fc.Arbitrary<RouteRule[]>) => fc.tuple(tablesOf(lists), stepsOf(tablesOf(lists)));
// The third: an app becomes a family, and back.
const scripts = fc.oneof(scriptsOf(rules), scriptsOf(family), scriptsOf(fc.oneof(rules, family)));

it("never lets two subsets hold the same resource in a namespace, shows and does not write, and converges when quiet", {
  timeout: 60_000,
}, () => {
  let count = 0;
  let shown = 0;
  fc.assert(
    fc.property(scripts, fc.boolean(), fc.boolean(), ([first, script], isBesideBare, isAtRest) => {
      const world = createWorld(first);
      // From before the app was divided: one that comes later nobody could keep from anything.
      if (isBesideBare) world.pods.set(BARE, { ...createPod("bare", "", false), bare: true });
      // Half of the worlds begin at rest.
      if (isAtRest) {
        for (const [index, name] of ["", "canary", "", "beta"].entries())
          world.pods.set(index, createPod(`p${index}`, name, index < 3, index % 2 === 1));
        settle(world);
      }
      for (const step of script) {
        take(world, step);
        reconcile(world);
        count++;
        if ([...world.pods.values()].some(({ enforced }) => enforced?.table.retained !== undefined)) shown++;
      }
      if (!world.isDeleting) world.pods.delete(BARE);
      expectRest(world, settle(world));
    }),
    { seed: FUZZ_SEED, numRuns: 10_000, interruptAfterTimeLimit: shareOf(20_000) },
  );
  expect(count).toBeGreaterThan(shareOf(5_000));
  expect(shown).toBeGreaterThan(count / 1_000);
});

function createWorld(first: RouteTable): World {
  return {
    pods: new Map(),
    specs: [first],
    bySpec: first,
    onLoss: "Restart",
    isPaused: false,
    isDeleting: false,
    isAgreed: false,
    issue: undefined,
    statusVersion: 0,
    ownersHashes: undefined,
  };
}

function createPod(name: string, of: string, controlled: boolean, late = false): Pod {
  const nothing = { enforced: undefined, outstanding: undefined, wanted: undefined };
  return { name, bare: false, controlled, subset: of, ...nothing, reported: true, late, older: false };
}

function take(world: World, step: Step): void {
  const pod = "pod" in step ? world.pods.get(step.pod) : undefined;
  switch (step.kind) {
    case "spec":
      world.bySpec = withBirths(world.bySpec, step.table);
      world.specs.push(world.bySpec);
      return;
    case "undo": {
      const old = world.specs.at(-2);
      if (old === undefined) return;
      world.specs.pop();
      world.bySpec = withBirths(world.bySpec, old);
      return;
    }
    case "mode":
      world.onLoss = step.onLoss;
      return;
    case "pause":
      world.isPaused = step.isPaused;
      return;
    case "delete":
      if (!world.isDeleting) world.isAgreed = agree(world.pods.values());
      world.isDeleting = true;
      return;
    case "failover":
      for (const [index, each] of world.pods) failOver(each, ((step.taken >> index) & 1) === 1);
      world.issue = undefined;
      return;
    case "statuses are written":
      for (const [index, each] of world.pods) world.pods.set(index, { ...each, late: false, older: false });
      return;
    case "deliver":
      deliver(pod);
      return;
    case "reports":
      if (pod) pod.reported = true;
      return;
    case "dies":
      world.pods.delete(step.pod);
      return;
    case "born":
      if (!pod?.bare) world.pods.set(step.pod, createPod(`p${step.pod}`, step.subset, step.controlled, step.late));
      return;
    case "moves":
      if (pod && !pod.bare) pod.subset = step.subset;
      return;
    default:
      step satisfies never;
  }
}

function agree(pods: Iterable<Pod>): boolean {
  const tables = [...pods].flatMap(({ enforced, outstanding }) => [enforced, outstanding]).flatMap((each) => each?.table ?? []);
  const texts = tables.map(({ rules: of, sharedResources }) => [
    of.filter(({ kind }) => kind !== "subset" && kind !== "limit"),
    sharedResources,
  ]);
  return new Set(texts.map((text) => JSON.stringify(text))).size <= 1;
}

/** Everything that is on its way arrives, and everybody reports. */
function settle(world: World): AppPlan {
  for (const pod of world.pods.values()) pod.reported = true;
  for (let round = 0; round < 10; round++) {
    const plan = reconcile(world);
    const busy = [...world.pods.values()].filter(({ outstanding }) => outstanding !== undefined);
    if (busy.length === 0) return plan;
    for (const pod of busy) while (pod.outstanding !== undefined) deliver(pod);
  }
  throw new Error("it does not come to rest");
}

/** Once the world is quiet: nothing is fenced, everybody enforces the newest, and new pods have nothing to show. */
function expectRest(world: World, plan: AppPlan): void {
  expect(plan.waits).toEqual([]);
  for (const pod of world.pods.values()) {
    if (pod.bare) continue;
    const { table } = plan.rulesFor(appPod(pod));
    expect({ ...table, retained: undefined }).toEqual({ ...plan.desired, retained: undefined });
    expect(pod.enforced).toMatchObject({ subset: world.isDeleting ? "" : pod.subset, digest: plan.rulesFor(appPod(pod)).digest });
    if (!pod.controlled || world.onLoss === "InPlace") expect(world.isDeleting ? undefined : table.retained).toBeUndefined();
  }
  if (world.isDeleting) {
    const [pods, factsOf] = read(world);
    expect(isDissolved(plan, pods, factsOf)).toBe(true);
    for (const pod of world.pods.values()) expectWhole(pod);
    for (const pod of world.pods.values()) expect(pod.enforced?.table.retained).toBeUndefined();
    return;
  }
  if (!world.isPaused) expect(plan.kept).toBe(0);
  const old = [...world.pods.entries()];
  for (const [index, pod] of old) world.pods.set(index, createPod(`${pod.name}-new`, pod.subset, true));
  // What a pause keeps is what somebody has: with the last old pod it would be gone.
  const anew = world.isPaused ? undefined : settle(world);
  for (const [index, { subset }] of anew === undefined ? [] : old) {
    const enforced = world.pods.get(index)?.enforced;
    expect(enforced?.subset).toBe(subset);
    // Equal tables may have other classes without namespaces.
    expect(enforced && tableToJson(enforced.table)).toEqual(tableToJson(world.bySpec));
  }
  for (const pod of anew === undefined ? [] : world.pods.values()) expect(pod.enforced?.table.retained).toBeUndefined();
}

// Namespaces are born and stay. (One that is deleted and made anew while a proxy is cut off: docs/design.md, limitations.)
function withBirths(before: RouteTable, next: RouteTable): RouteTable {
  const isByName = BUCKETS.some((bucket) => next.classOf.has(bucket));
  return withPlaces(next, new Set([...namespacesOf(before), ...namespacesOf(next)]), isByName);
}

function withPlaces(table: RouteTable, namespaces: Iterable<string>, isByName: boolean): RouteTable {
  const inScope = isSharded(table) ? [CLUSTER_SCOPE, ...(isByName ? BUCKETS : [])] : [];
  const places = [...namespaces, ...inScope];
  return { ...table, classOf: new Map(places.map((place) => [place, PLACES.indexOf(place)])) };
}

// Another manager, which remembers nothing; the streams break, and what was on its way is lost or is taken without a word.
function failOver(pod: Pod, isTaken: boolean): void {
  if (isTaken && pod.outstanding !== undefined) pod.enforced = pod.outstanding;
  pod.outstanding = undefined;
  pod.wanted = undefined;
  pod.reported = pod.bare;
  pod.older = true;
}

function deliver(pod: Pod | undefined): void {
  if (pod?.outstanding === undefined) return;
  pod.enforced = pod.outstanding;
  pod.outstanding = undefined;
  send(pod);
}

function send(pod: Pod): void {
  if (pod.outstanding !== undefined || pod.wanted === undefined || pod.wanted.digest === pod.enforced?.digest) return;
  pod.outstanding = pod.wanted;
}

/** The world as the manager sees it. */
function read({ pods }: World): [AppPod[], FactsOf] {
  const byKey = new Map<string, Pod>([...pods.values()].map((pod) => [podKey(appPod(pod)), pod]));
  const factsOf = (key: string): ProxyFacts | undefined => {
    const pod = byKey.get(key);
    if (pod === undefined || !pod.reported || pod.bare) return undefined;
    const common = { inDoubt: [], mayHoldMore: false, problems: {}, capabilities: new Set<string>(), ...NO_REPORTS };
    const version = Math.max(pod.enforced?.version ?? 0, pod.outstanding?.version ?? 0);
    return { ...common, connected: true, acknowledged: pod.enforced, outstanding: pod.outstanding, version };
  };
  return [[...pods.values()].map(appPod), factsOf];
}

function appPod({ name, bare, controlled, subset: of, enforced, outstanding, late, older }: Pod): AppPod {
  const common = {
    namespace: APP.namespace,
    name,
    uid: name,
    subset: of,
    controlled,
    ready: true,
    ended: false,
    terminating: false,
  };
  // Before its first snapshot its operator does not run.
  const serves = enforced !== undefined || outstanding !== undefined;
  return { ...common, proxy: bare ? "none" : "own", running: bare || older || (serves && !late) };
}

function reconcile(world: World): AppPlan {
  const [pods, factsOf] = read(world);
  const { bySpec, isPaused } = world;
  const common = { app: APP, words: undefined, pods, factsOf };
  const plan = world.isDeleting
    ? planDissolution({ ...common, lockName: "lock", namespaces: namespacesOf(bySpec) })
    : planApp({
        ...common,
        bySpec,
        isPaused,
        ownersHashes: world.ownersHashes,
        subsets: SUBSETS,
        lockName: "lock",
        callers: NO_CALLER_POLICY,
        retainsLosses: world.onLoss === "Restart",
      });
  const claims = podClaims(APP, pods, factsOf);
  for (const [of, { table }] of plan.rules) expectNoNeedlessStop(plan.desired, table, of, claims);
  const issue = nextIssue(world.issue, world.statusVersion, plan, pods, factsOf);
  world.issue = issue;
  world.statusVersion = issue.version;
  for (const pod of world.pods.values()) {
    if (!pod.reported || pod.bare) continue;
    const rules = plan.rulesFor(appPod(pod));
    pod.wanted = issue.snapshots.get(rules.digest);
    if (pod.wanted === undefined) throw new Error(`there is no version of what ${pod.name} is to enforce`);
    if (world.isDeleting || (world.onLoss === "Restart" && pod.controlled)) expectNothingLost(pod, pod.wanted);
    if (world.isDeleting && world.isAgreed) expectNothingVanishes(pod, pod.wanted);
    send(pod);
  }
  for (const pod of world.pods.values()) expectShownIsNotWritten(pod);
  if (world.isPaused && !world.isDeleting)
    expectKept(bySpec, tableInForce(APP, pods, factsOf, plan.ownersHashes).table, plan.desired);
  world.ownersHashes = plan.ownersHashes;
  // From here on nobody may bring anything back any more.
  if (world.isDeleting && isDissolved(plan, pods, factsOf)) for (const pod of world.pods.values()) expectWhole(pod);
  expectOneOwner(world.pods);
  return plan;
}
