// The push-down against a reference: whatever a plan asks an API server to filter, the plan hides nothing that is the subset's
// and was asked for, and with the residual filter behind it exactly that comes through; pages too, while routes change.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createRegistry } from "../../src/base/metrics.ts";
import { NEVER } from "../../src/kube/resource-version.ts";
import { StatusError } from "../../src/kube/status.ts";
import { TOLD_NOTHING } from "../../src/mesh/moves/known.ts";
import { movesBetween } from "../../src/mesh/moves/moves-between.ts";
import { ResourceLog } from "../../src/mesh/moves/resource-log.ts";
import type { Enforced } from "../../src/mesh/ownership/enforced.ts";
import { excludedNamespaces, isHiddenBy, joinSelectors, planQuery, type QueryPlan } from "../../src/mesh/ownership/plan-query.ts";
import { isOwned, type ResourceView } from "../../src/mesh/ownership/snapshot.ts";
import { viewOf } from "../../src/mesh/ownership/view-of.ts";
import { isolate } from "../../src/proxy/outbound/isolate/isolate.ts";
import { MAX_TARGET_BYTES } from "../../src/proxy/outbound/lists/server-side-filter.ts";
import { createEnforcer } from "../../src/proxy/session/enforcer.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { budget } from "../support/fuzz.ts";
import { isolateDeps } from "../support/isolate.ts";
import { callOf, fakeUpstream, textOf } from "../support/layer-call.ts";
import { snapshot, subset, table } from "../support/route-table.ts";
import { answerList, type ServedObject, type Server, select } from "../support/simulated-server.ts";

// Short names of one family lie close together in the hash, long ones anywhere.
const names = fc.oneof(
  fc.nat({ max: 120 }).map((n) => `ns-${String(n).padStart(3, "0")}`),
  fc.constantFrom("a", "b", "c", "aa", "ab", "z"),
  fc.stringMatching(/^[a-z][a-z0-9-]{0,40}[a-z0-9]$/),
);
const selector = fc.constantFrom(undefined, "tier=gold", "tier notin (gold)");

interface World {
  readonly blue: readonly string[];
  readonly rest: readonly string[];
  readonly fenced: readonly string[];
  readonly unknown: readonly string[];
  readonly own: string;
  /** No rule says anything about the resource: what nobody has heard of is the default subset's. */
  readonly isRuleless: boolean;
}

const world: fc.Arbitrary<World> = fc
  .record({
    all: fc.oneof(fc.uniqueArray(names, { maxLength: 20 }), fc.uniqueArray(names, { minLength: 40, maxLength: 130 })),
    seed: fc.infiniteStream(fc.nat({ max: 19 })),
    share: fc.nat({ max: 10 }),
    own: fc.constantFrom("", "blue"),
    isRuleless: fc.boolean(),
  })
  .map(({ all, seed, share, own, isRuleless }) => {
    const lists = { blue: [] as string[], rest: [] as string[], fenced: [] as string[], unknown: [] as string[] };
    for (const name of all) {
      const dice = seed.next().value as number;
      if (dice === 19) lists.unknown.push(name);
      else (dice < share ? lists.blue : lists.rest).push(name);
      if (dice === 18) lists.fenced.push(name);
    }
    return { ...lists, own, isRuleless };
  });

function snapshotOf({ blue, rest, fenced, own, isRuleless }: World, version = 1) {
  const members = Object.fromEntries([...blue.map((name) => [name, [0]]), ...rest.map((name) => [name, []])]);
  const rule = isRuleless ? subset("blue", { apiGroups: ["x.io"], resources: ["*"] }) : subset("blue");
  return snapshot(table([rule], members, { fenced }), { subset: own, version });
}

function viewIn(of: World): ResourceView {
  return viewOf(snapshotOf(of), "", "pods");
}

function enforcedIn(of: World): Enforced {
  const made = snapshotOf(of);
  return { snapshot: made, view: (group, resource) => viewOf(made, group, resource) };
}

function withObjects(view: ResourceView, labels: string | undefined): ResourceView {
  if (labels === undefined) return view;
  const isGold = labels === "tier=gold";
  return { ...view, ownsAll: false, labelFilter: { labelSelector: labels, matches: ({ tier }) => (tier === "gold") === isGold } };
}

function objectsIn({ blue, rest, unknown }: World): ServedObject[] {
  return [...blue, ...rest, ...unknown].flatMap((namespace, index) => [
    { namespace, name: `a-${index}`, labels: { tier: index % 2 === 0 ? "gold" : "iron" } },
    { namespace, name: "b", labels: {} },
  ]);
}

function queryWith(own: Readonly<Record<string, string>>, plan: QueryPlan): URLSearchParams {
  const query = new URLSearchParams(own);
  if (plan.fieldSelector !== "") query.set("fieldSelector", joinSelectors(query.get("fieldSelector"), plan.fieldSelector));
  if (plan.labelSelector !== undefined) query.set("labelSelector", joinSelectors(query.get("labelSelector"), plan.labelSelector));
  if (plan.shards !== undefined) query.set("shardSelector", plan.shards.selector);
  return query;
}

const callers = fc.constantFrom<Record<string, string>>(
  {},
  { labelSelector: "tier in (gold,iron)" },
  { fieldSelector: "metadata.name!=b" },
  { fieldSelector: "metadata.namespace!=ns-001" },
);

describe("a plan", () => {
  it("hides nothing that is ours and asked for, and what it lets through the residual filter brings to exactly that", () => {
    fc.assert(
      fc.property(world, selector, callers, fc.boolean(), fc.nat({ max: 7_000 }), (of, labels, own, shards, shardBytes) => {
        const view = withObjects(viewIn(of), labels);
        const server = { objects: objectsIn(of), shards };
        const plan = planQuery(view, "namespaced", { shardBytes });
        const wanted = select(server, new URLSearchParams(own)).filter((object) => isOwned(view, object));
        const served = select(server, queryWith(own, plan));
        expect(served.filter((object) => isOwned(view, object))).toEqual(wanted);
        if (plan.shards !== undefined) expect(plan.shards.selector.replaceAll("|", "%7C").length).toBeLessThanOrEqual(shardBytes);
      }),
      budget(),
    );
  });

  it("lets no object of a known foreign namespace through where there is room for all ranges", () => {
    fc.assert(
      fc.property(world, (of) => {
        const view = viewIn(of);
        if (view.ownsAll) return;
        const plan = planQuery(view, "namespaced", { shardBytes: 100_000 });
        const foreign = select({ objects: objectsIn(of) }, queryWith({}, plan)).filter(
          ({ namespace }) => view.ownershipOf(namespace) !== "own" && !of.unknown.includes(namespace),
        );
        expect(foreign).toEqual([]);
      }),
      budget(1_000),
    );
  });

  it("that comes to hide something of ours is stale, for a running watch and for a list that a watch goes on from", () => {
    fc.assert(
      fc.property(world, world, fc.nat({ max: 3_000 }), (old, next, shardBytes) => {
        const [before, now] = [enforcedIn(old), enforcedIn({ ...next, own: old.own })];
        const plan = planQuery(before.view("", "pods"), "namespaced", { shardBytes });
        const pushed = { only: plan.only, excluded: excludedNamespaces(plan), shards: plan.shards };
        const view = now.view("", "pods");
        const objects = objectsIn(next);
        const shown = new Set(select({ objects }, queryWith({}, plan)));
        const hides = objects.some((object) => isOwned(view, object) && !shown.has(object));
        if (!hides) return;
        const log = new ResourceLog(new Set(), 0);
        log.give(5n);
        if (plan.only !== undefined || plan.shards !== undefined) log.hideUnknown();
        log.take(movesBetween(before, now).of({ group: "", resource: "pods" }), 1);
        const collection = { group: "", resource: "pods", namespace: "" };
        expect(log.since(collection, { version: 5n, told: TOLD_NOTHING }).kind).not.toBe("nothing");
        const due = log.since(collection, { version: NEVER, told: 0 });
        const isHidden = (name: string) => isHiddenBy(pushed, name);
        expect(due.kind === "expired" || (due.kind === "moved" && due.moved.some(isHidden))).toBe(true);
      }),
      budget(),
    );
  });
});

describe("a list through the proxy", () => {
  const start = (of: World, server: Server) => {
    const session = createEnforcer();
    session.enforce(snapshotOf(of));
    const upstream = fakeUpstream((call) => answerList(server, call));
    const discovery = { scopeOf: async () => "namespaced" as const };
    const registry = createRegistry("proxy", "test");
    const layer = isolate(isolateDeps({ session, clock: createFakeClock(), registry, random: () => 0, discovery }));
    return { session, upstream, handler: layer(upstream) };
  };
  const list = async (handler: ReturnType<typeof start>["handler"], query: Readonly<Record<string, string>>) => {
    const reply = await handler(callOf("GET", `/api/v1/pods?${new URLSearchParams(query)}`));
    return JSON.parse(await textOf(reply)) as { items: { metadata: ServedObject }[]; metadata: { continue?: string } };
  };
  const servers = fc.record({
    shards: fc.boolean(),
    refuses: fc.subarray(["fieldSelector", "shardSelector"], { maxLength: 1 }),
  });

  it("is exact whatever the server knows, refuses or ignores, with targets of a bounded length", async () => {
    await fc.assert(
      fc.asyncProperty(world, servers, callers, fc.nat({ max: 9_000 }), async (of, knows, own, padding) => {
        const server = { ...knows, refuses: own.fieldSelector === undefined ? knows.refuses : [], objects: objectsIn(of) };
        const { handler, upstream } = start(of, server);
        const view = viewIn(of);
        const wanted = select(server, new URLSearchParams(own)).filter((object) => isOwned(view, object));
        const query = { ...own, labelSelector: joinSelectors(own.labelSelector ?? "", `!${"x".repeat(padding + 1)}`) };
        for (let time = 0; time < 2; time++) expect((await list(handler, query)).items.map((i) => i.metadata)).toEqual(wanted);
        for (const { target, info } of upstream.calls)
          if (info.query.has("shardSelector")) expect(target.length).toBeLessThanOrEqual(MAX_TARGET_BYTES);
      }),
      budget(),
    );
  });

  it("in pages holds every object once, or is told to begin anew, though the routes change between the pages", async () => {
    const worlds = fc.array(fc.tuple(world, fc.boolean()), { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(worlds, servers, fc.integer({ min: 1, max: 30 }), async (steps, knows, limit) => {
        const [[first]] = steps as [[World, boolean]];
        const server = { ...knows, objects: objectsIn(first) };
        const { handler, session } = start(first, server);
        let version = 1;
        const seen: ServedObject[] = [];
        // What is the subset's all the time must be there, what never is must not.
        let [always, sometimes] = [new Set(server.objects), new Set<ServedObject>()];
        let token: string | undefined = "";
        for (let page = 0; token !== undefined && page < 400; page++) {
          const [of, sole] = steps[Math.min(page, steps.length - 1)] as [World, boolean];
          const alone = { ...first, blue: first.blue.slice(page % 2, (page % 2) + 1) };
          const current = { ...(sole ? alone : of), own: first.own, blue: sole ? alone.blue : of.blue };
          session.enforce(snapshotOf(current, ++version));
          const view = viewIn(current);
          always = new Set([...always].filter((object) => isOwned(view, object)));
          sometimes = new Set([...sometimes, ...server.objects.filter((object) => isOwned(view, object))]);
          try {
            const answer = await list(handler, { limit: String(limit), ...(token === "" ? {} : { continue: token }) });
            seen.push(...answer.items.map((item) => item.metadata));
            token = answer.metadata.continue;
          } catch (error) {
            if (!(error instanceof StatusError)) throw error;
            expect([error.status.reason, page > 0]).toEqual(["Expired", true]);
            return;
          }
        }
        const keys = seen.map(({ namespace, name }) => `${namespace}/${name}`);
        expect(new Set(keys).size).toBe(keys.length);
        for (const { namespace, name } of always) expect(keys).toContain(`${namespace}/${name}`);
        const allowed = new Set([...sometimes].map(({ namespace, name }) => `${namespace}/${name}`));
        expect(keys.filter((key) => !allowed.has(key))).toEqual([]);
      }),
      budget(),
    );
  });
});
