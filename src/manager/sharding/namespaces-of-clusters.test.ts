// One placement divides the namespaces of home and of all clusters: the promises of a placement, over all of them.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { sampleShardingRoot } from "../../../test/support/sharding-config.ts";
import type { ShardingConfig } from "../../api/sharding-config.ts";
import { ownersOf } from "../../mesh/ownership/owners.ts";
import { ownerText } from "../../mesh/ownership/words.ts";
import { NONE_CHOSEN } from "../apps/chosen-clusters.ts";
import { compileNow } from "../apps/compile/compile-now.ts";
import type { ClusterFacts } from "../apps/compile/route-spec.ts";
import { slotIn, slotOf } from "./balanced-map.ts";
import type { ClusterNames, NamespacesAbroad } from "./cluster-names.ts";
import { clusterRulesIn } from "./cluster-owners.ts";
import { isUneven } from "./evenness.ts";
import { type Placement, placementOf, placer } from "./placement.ts";
import { shardsOfRoot } from "./shards.ts";

const NOW = Date.parse("2026-01-01T00:00:00Z");
const HOUR = 3_600_000;
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

interface World {
  readonly home: readonly string[];
  readonly clusters: readonly ClusterNames[];
}

interface Look {
  readonly shards: number;
  readonly previous?: Placement;
  readonly placement?: "Legacy" | "Balanced";
  readonly canary?: boolean;
  readonly nowMs?: number;
  readonly abroad?: NamespacesAbroad;
  readonly percentPerHour?: number;
}

const CANARY = { replicas: 1, inNamespaces: ["kube-system"] };

function lookAt(world: World, { shards, previous, placement = "Balanced", canary = false, nowMs = NOW, ...look }: Look) {
  const auto = { everyShardReplicas: 1, graceSeconds: 60, maxMovedPercentPerHour: look.percentPerHour ?? 200 };
  const step = placementOf({
    previous,
    root: { auto, placement, canary: canary ? CANARY : undefined },
    statefulSet: { replicas: shards + (canary ? 1 : 0), start: 0 },
    ready: new Set(upTo(shards)),
    restarting: new Set(),
    namespaces: world.home,
    abroad: look.abroad ?? { known: world.clusters, isComplete: true },
    nowMs,
  });
  if (step === undefined) throw new Error("no placement");
  return step;
}

const placed = (world: World, look: Look): Placement => lookAt(world, look).placement;

/** Every namespace with its shard: "/team-1" at home, "eu/team-1" elsewhere. */
function ownersIn({ home, clusters }: World, placement: Placement): ReadonlyMap<string, number> {
  const at = (cluster: string | undefined, names: readonly string[]) => {
    const shardOf = placer(placement, cluster);
    return names.map((name) => [`${cluster ?? ""}/${name}`, shardOf(name)] as const);
  };
  return new Map([...at(undefined, home), ...clusters.flatMap(({ cluster, names }) => at(cluster, names))]);
}

function loads(owners: ReadonlyMap<string, number>, active: readonly number[]): number[] {
  const all = [...owners.values()];
  return active.map((shard) => all.filter((each) => each === shard).length);
}

function fullestSlot({ home, clusters }: World): number {
  const slots = [...home.map(slotOf), ...clusters.flatMap(({ cluster, names }) => names.map((name) => slotIn(cluster, name)))];
  return Math.max(0, ...[...Map.groupBy(slots, (slot) => slot).values()].map((same) => same.length));
}

function fewestMoves(before: ReadonlyMap<string, number>, active: readonly number[]): number {
  const kept = loads(before, active).sort((a, b) => b - a);
  const [part, larger] = [Math.floor(before.size / active.length), before.size % active.length];
  return before.size - kept.reduce((sum, load, at) => sum + Math.min(load, part + (at < larger ? 1 : 0)), 0);
}

const movesBetween = (before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>) =>
  [...before].filter(([place, shard]) => after.get(place) !== shard);

/** Clusters mostly have namespaces of the same names. */
const someNames = fc
  .record({ teams: fc.integer({ min: 0, max: 60 }), own: fc.integer({ min: 0, max: 20 }), salt: fc.nat(99) })
  .map(({ teams, own, salt }) => [
    "default",
    "kube-system",
    ...upTo(teams).map((team) => `team-${team}`),
    ...upTo(own).map((each) => `own-${salt}-${each}`),
  ]);
const worlds: fc.Arbitrary<World> = fc.record({
  home: someNames,
  clusters: fc
    .array(someNames, { maxLength: 12 })
    .map((all) => all.map((names, at): ClusterNames => ({ cluster: `cluster-${at}`, names }))),
});
const sizes = fc.array(fc.integer({ min: 1, max: 16 }), { minLength: 1, maxLength: 5 });

function forEachStep(check: (world: World, after: Placement, before: Placement | undefined) => void) {
  fc.assert(
    fc.property(worlds, sizes, (world, steps) => {
      let previous: Placement | undefined;
      for (const [at, shards] of steps.entries()) {
        const next = placed(world, { shards, nowMs: NOW + at * HOUR, ...(previous && { previous }) });
        check(world, next, previous);
        previous = next;
      }
    }),
    { numRuns: 100 },
  );
}

describe("the namespaces of clusters and of home together", () => {
  it("are even: each shard has its part, less and more by at most the fullest slot", () => {
    forEachStep((world, { active, ...rest }) => {
      const owners = ownersIn(world, { active, ...rest });
      const [all, part, slot] = [loads(owners, active), owners.size / active.length, fullestSlot(world)];
      expect(Math.min(...all)).toBeGreaterThanOrEqual(Math.floor(part) - slot);
      expect(Math.max(...all)).toBeLessThanOrEqual(Math.ceil(part) + slot);
    });
  });

  it("move at a new number of shards only as they must, and one slot for each shard that gains", () => {
    forEachStep((world, after, before) => {
      if (before === undefined) return;
      const [old, next] = [ownersIn(world, before), ownersIn(world, after)];
      const moves = movesBetween(old, next);
      const gaining = new Set(moves.map(([place]) => next.get(place))).size;
      expect(moves.length).toBeLessThanOrEqual(fewestMoves(old, after.active) + gaining * fullestSlot(world));
      const counted = after.moves === before.moves ? 0 : after.moves.at(-1)?.namespaces;
      expect(counted).toBe(moves.length);
    });
  });

  it("belong to active shards, and the same facts move nothing", () => {
    forEachStep((world, after) => {
      for (const shard of ownersIn(world, after).values()) expect(after.active).toContain(shard);
      expect(placed(world, { shards: after.shards, previous: after, nowMs: NOW + 5 * HOUR }).map).toEqual(after.map);
    });
  });

  it("of one name in 500 clusters are spread evenly", () => {
    const clusters = upTo(500).map((at): ClusterNames => ({ cluster: `c-${at}`, names: ["default", "kube-system", "shop"] }));
    const world: World = { home: ["default"], clusters };
    const placement = placed(world, { shards: 5 });
    const ofShop = new Map([...ownersIn(world, placement)].filter(([place]) => place.endsWith("/shop")));
    expect(Math.max(...loads(ofShop, placement.active))).toBeLessThanOrEqual(130);
    expect(Math.min(...loads(ofShop, placement.active))).toBeGreaterThanOrEqual(70);
    const all = loads(ownersIn(world, placement), placement.active);
    expect([Math.max(...all), Math.min(...all)]).toEqual([301, 300]);
  });
});

describe("clusters whose namespaces are not known", () => {
  it("move nothing, however long, and the numbers are not judged", () => {
    fc.assert(
      fc.property(worlds, fc.integer({ min: 1, max: 9 }), fc.infiniteStream(fc.boolean()), (world, shards, isKnown) => {
        const before = placed(world, { shards });
        let previous = before;
        for (const hour of [1, 3, 9]) {
          const abroad = { known: world.clusters.filter(() => isKnown.next().value), isComplete: false };
          const { placement, againMs } = lookAt(world, { shards, previous, abroad, nowMs: NOW + hour * HOUR });
          previous = placement;
          expect(againMs).toBeUndefined();
        }
        expect(placed(world, { shards, previous, nowMs: NOW + 10 * HOUR })).toEqual(before);
      }),
      { numRuns: 100 },
    );
  });

  it("are awaited by a shard that could join, and then it gets its part of them", () => {
    const clusters = [{ cluster: "eu", names: upTo(60).map((team) => `team-${team}`) }];
    const world: World = { home: ["default"], clusters };
    const previous = placed(world, { shards: 2 });
    const abroad = { known: [], isComplete: false, awaitedUntilMs: NOW + 60_000 };
    const waiting = lookAt(world, { shards: 3, previous, abroad });
    expect([waiting.placement.active, waiting.againMs]).toEqual([[1, 2], 60_000]);
    const { placement } = lookAt(world, { shards: 3, previous: waiting.placement, nowMs: NOW + 5_000 });
    expect(loads(ownersIn(world, placement), placement.active)).toEqual([21, 20, 20]);
    const late = lookAt(world, { shards: 3, previous: waiting.placement, abroad, nowMs: NOW + 60_000 });
    expect(late.placement.active).toEqual([1, 2, 3]);
  });
});

describe("the numbers of a placement", () => {
  const late = (cluster: string, placement: Placement, shard: number) =>
    upTo(4_000)
      .map((at) => `late-${at}`)
      .filter((name) => placer(placement, cluster)(name) === shard)
      .slice(0, 100);

  it("are uneven by the namespaces of a cluster, and an hour later one shard has given its surplus", () => {
    const few: World = { home: ["default"], clusters: [{ cluster: "eu", names: ["default"] }] };
    const first = placed(few, { shards: 4 });
    const world: World = { ...few, clusters: [{ cluster: "eu", names: ["default", ...late("eu", first, 2)] }] };
    const seen = placed(world, { shards: 4, previous: first });
    expect([seen.unevenSinceMs, seen.map]).toEqual([NOW, first.map]);
    const after = placed(world, { shards: 4, previous: seen, nowMs: NOW + HOUR });
    expect(isUneven(loads(ownersIn(world, after), after.active))).toBe(false);
    expect(after.moves).toHaveLength(1);
  });

  it("count what moves with Legacy, and a change between Legacy and Balanced as a move of all", () => {
    const names = upTo(90).map((team) => `team-${team}`);
    const world: World = { home: ["default"], clusters: ["eu", "us"].map((cluster) => ({ cluster, names })) };
    const two = placed(world, { shards: 2, placement: "Legacy" });
    const three = placed(world, { shards: 3, placement: "Legacy", previous: two });
    const moved = movesBetween(ownersIn(world, two), ownersIn(world, three)).length;
    expect([three.moves.at(-1)?.namespaces, moved > 40]).toEqual([moved, true]);
    const balanced = placed(world, { shards: 3, previous: three, nowMs: NOW + HOUR });
    expect(balanced.moves.at(-1)?.namespaces).toBeGreaterThanOrEqual(180);
  });

  it("use up the budget of moves by the namespaces of clusters, too", () => {
    const world: World = { home: ["default"], clusters: [{ cluster: "eu", names: upTo(90).map((team) => `team-${team}`) }] };
    const two = placed(world, { shards: 2, percentPerHour: 30 });
    const three = placed(world, { shards: 3, previous: two, percentPerHour: 30 });
    expect(three.moves[0]?.namespaces).toBeGreaterThanOrEqual(28);
    const four = placed(world, { shards: 4, previous: three, percentPerHour: 30, nowMs: NOW + 60_000 });
    expect([four.active, four.joinsFromMs]).toEqual([[1, 2, 3], NOW + HOUR]);
  });

  it("leave out the canary's namespaces, which it owns by their names in each cluster", () => {
    const names = ["kube-system", ...upTo(30).map((team) => `team-${team}`)];
    const world: World = { home: names, clusters: [{ cluster: "eu", names }] };
    const placement = placed(world, { shards: 2, canary: true });
    const normal = new Map([...ownersIn(world, placement)].filter(([place]) => !place.endsWith("kube-system")));
    expect(loads(normal, placement.active)).toEqual([30, 30]);
  });
});

describe("the routes inside clusters", () => {
  const UPSTREAM = { url: "https://eu.example:6443" };
  const EU: ClusterFacts = { name: "eu", labels: {}, upstream: UPSTREAM };
  const US: ClusterFacts = { name: "us", labels: {}, upstream: UPSTREAM };
  const TUNNEL: ClusterFacts = { name: "tunnel", labels: {} };
  const rootOf = (fields: object) =>
    ({
      ...sampleShardingRoot({
        clusterSelector: {},
        clustersBy: "Namespace",
        placement: "Balanced",
        canary: undefined,
        auto: { everyShardReplicas: 1 },
        ...fields,
      }),
    }) as unknown as ShardingConfig;
  const rulesFor = (config: ShardingConfig, placement: Placement) =>
    clusterRulesIn(config, { family: shardsOfRoot(config, placement), placement });
  const ownersInside = (config: ShardingConfig, placement: Placement, cluster: ClusterFacts, names: readonly string[]) => {
    const rules = rulesFor(config, placement);
    const owner = rules.clusterOwners?.([EU, US, TUNNEL], NONE_CHOSEN).get(cluster.name) ?? "";
    const route = rules.clusterRoute?.(cluster, owner, NONE_CHOSEN);
    if (route === undefined) throw new Error("no route");
    const { ownerOf } = ownersOf(
      compileNow(
        route,
        names.map((name) => ({ name, labels: {} })),
      ),
      "",
      "pods",
    );
    return { owner, of: (place: string) => ownerText(ownerOf(place)) };
  };
  const shardText = (number: number) => `subset "shop-${number}-normal"`;

  it.each(["Legacy", "Balanced"] as const)("give each namespace of each cluster to one active shard with %s", (placement) => {
    fc.assert(
      fc.property(worlds, fc.integer({ min: 1, max: 6 }), ({ home, clusters }, shards) => {
        const world: World = { home, clusters: clusters.slice(0, 1).map(({ names }) => ({ cluster: "eu", names })) };
        const [{ names } = { names: [] }] = world.clusters;
        const made = placed(world, { shards, placement });
        const config = rootOf({ placement });
        const { of, owner } = ownersInside(config, made, EU, names);
        const shardOf = placer(made, "eu");
        for (const name of names) expect(of(name)).toBe(shardText(shardOf(name)));
        expect(of("")).toBe(`subset "${owner}"`);
      }),
      { numRuns: 40 },
    );
  });

  it("follow the names alone with Legacy and for the canary, and both names with Balanced", () => {
    const names = ["kube-system", ...upTo(40).map((team) => `team-${team}`)];
    const world: World = { home: names, clusters: [{ cluster: "eu", names }] };
    for (const placement of ["Legacy", "Balanced"] as const) {
      const made = placed(world, { shards: 3, placement, canary: true });
      const config = rootOf({ placement, canary: CANARY });
      const [eu, us] = [ownersInside(config, made, EU, names), ownersInside(config, made, US, names)];
      expect([eu.of("kube-system"), us.of("kube-system")]).toEqual(Array(2).fill('subset "shop-0-canary"'));
      const same = names.filter((name) => eu.of(name) === us.of(name));
      if (placement === "Legacy") expect(same).toEqual(names);
      else expect(same.length).toBeLessThan(30);
    }
  });

  it("divide what is in no namespace by buckets with clusterScoped ByName", () => {
    const world: World = { home: ["a"], clusters: [] };
    const made = placed(world, { shards: 4 });
    const config = rootOf({ clusterScoped: "ByName" });
    const step = placementOf({
      previous: made,
      root: { auto: { everyShardReplicas: 1 }, placement: "Balanced", clusterScoped: "ByName" },
      statefulSet: { replicas: 4, start: 0 },
      ready: new Set(upTo(4)),
      restarting: new Set(),
      namespaces: ["a"],
      nowMs: NOW,
    });
    const { of } = ownersInside(config, step?.placement ?? made, EU, ["a"]);
    expect(new Set(upTo(31).map((bucket) => of(`#${bucket}`))).size).toBe(4);
  });

  it("are those of whole clusters for a cluster without Terminate, with clustersBy Cluster, and while it belongs to no shard", () => {
    const made = placed({ home: ["a", "b"], clusters: [] }, { shards: 2 });
    const inside = rulesFor(rootOf({}), made);
    const whole = (rules: typeof inside, cluster: ClusterFacts, owner: string) =>
      rules.clusterRoute?.(cluster, owner, NONE_CHOSEN)?.rules.map(({ resources }) => resources);
    expect(whole(inside, TUNNEL, "shop-1-normal")).toEqual([[]]);
    expect(whole(rulesFor(rootOf({ clustersBy: undefined }), made), EU, "shop-1-normal")).toEqual([[]]);
    expect(whole(inside, EU, "")).toEqual([]);
    expect(whole(inside, EU, "shop-1-normal")?.length).toBeGreaterThan(1);
  });

  it("leave what is in no namespace with its shard while clusters are away, and share whole clusters apart from it", () => {
    const made = placed({ home: ["a"], clusters: [] }, { shards: 2 });
    const { clusterOwners } = rulesFor(rootOf({}), made);
    const named = (prefix: string, fields: object) =>
      upTo(6).map((at): ClusterFacts => ({ name: `${prefix}-${at}`, labels: {}, ...fields }));
    const all = [...named("inside", { upstream: UPSTREAM }), ...named("whole", {})];
    const owners = clusterOwners?.(all, NONE_CHOSEN) ?? new Map();
    const numberOf = (prefix: string) =>
      [...owners].filter(([name, owner]) => name.startsWith(prefix) && owner === "shop-1-normal").length;
    expect([numberOf("inside"), numberOf("whole")]).toEqual([3, 3]);
    const away = all.map((cluster): ClusterFacts => {
      const isAway = cluster.upstream !== undefined && owners.get(cluster.name) === "shop-1-normal";
      const present = { ...cluster, owners: new Map([["shop", owners.get(cluster.name) ?? ""]]) };
      return isAway ? { ...present, isUnreachable: true } : present;
    });
    const more = [...away, { name: "inside-7", labels: {}, upstream: UPSTREAM }];
    expect([...(clusterOwners?.(more, NONE_CHOSEN) ?? [])]).toEqual(expect.arrayContaining([...owners]));
  });
});
