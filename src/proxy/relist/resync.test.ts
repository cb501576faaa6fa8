import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { collectGarbage } from "../../../test/support/collect-garbage.ts";
import { eventually } from "../../../test/support/eventually.ts";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { group, retained, snapshot, subset, table } from "../../../test/support/route-table.ts";
import { type Routes, routes } from "../../../test/support/test-routes.ts";
import { ownsUnknown } from "../../route/plan-query.ts";
import { cutShards } from "../../route/shard-ranges.ts";
import { readViewOf } from "../../route/snapshot.ts";
import { createEnforcer, enforced } from "../session/enforcer.ts";
import { createLeftOut } from "./left-out.ts";
import { createRelistPace, createResync } from "./resync.ts";
import { changeBetween } from "./view-change.ts";

const pods = { group: "", resource: "pods", namespace: "", shape: "pods" };

function setup(first: Routes) {
  const session = createEnforcer();
  const resync = createResync(session, createFakeClock());
  let version = 1;
  const enforce = (next: Routes) => session.enforce(routes(version++, next));
  enforce(first);
  return { resync, enforce };
}

const answered = (status: number) => async () => ({ status });

describe("what a route change means for a resource", () => {
  const change = (before: Routes, now: Routes, namespace = "") =>
    changeBetween(enforced(routes(1, before)), enforced(routes(2, now))).of("", "pods", namespace);

  it.each<[string, Routes, Routes, boolean, boolean]>([
    ["nothing", { blue: ["a"], defaultSubset: ["b"] }, { blue: ["a"], defaultSubset: ["b"] }, false, false],
    ["a gain", { blue: ["a"], defaultSubset: ["b"] }, { blue: ["a", "b"] }, true, false],
    ["a loss", { blue: ["a", "b"] }, { blue: ["a"], defaultSubset: ["b"] }, false, true],
    ["a fence", { blue: ["a"] }, { blue: ["a"], fenced: ["a"] }, false, true],
    ["a grant after a fence", { fenced: ["a"] }, { blue: ["a"] }, true, false],
    ["a loss that is shown on", { blue: ["a"] }, { defaultSubset: ["a"], retained: ["a"] }, false, false],
    ["what was retained, back", { defaultSubset: ["a"], retained: ["a"] }, { blue: ["a"] }, false, false],
    ["the end of what was shown", { defaultSubset: ["a"], retained: ["a"] }, { defaultSubset: ["a"] }, false, true],
    ["a new namespace", { blue: ["a"] }, { blue: ["a", "new"] }, false, false],
    ["a deleted namespace", { blue: ["a", "b"] }, { blue: ["a"] }, false, false],
  ])("%s", (_, before, now, gained, lost) => {
    expect(change(before, now)).toEqual({ gained, lost });
  });

  it("touches a collection of one namespace only through that namespace", () => {
    const before = { blue: ["a"], defaultSubset: ["b"] };
    const now = { blue: ["a", "b"] };
    expect(change(before, now, "a")).toEqual({ gained: false, lost: false });
    expect(change(before, now, "b")).toEqual({ gained: true, lost: false });
  });

  const configMaps = [group("", "configmaps")];
  const fencedPublic = (members: Record<string, number[]>, fenced: string[]) =>
    enforced(snapshot(table([subset("canary", ...configMaps)], members, { sharedResources: configMaps, fenced })));

  it("of a public resource that a rule names too is not hidden by another fenced namespace, which everybody sees still", () => {
    const before = fencedPublic({ y: [], x: [] }, []);
    const now = fencedPublic({ y: [], x: [0] }, ["x", "y"]);
    expect(changeBetween(before, now).of("", "configmaps", "").lost).toBe(true);
  });

  it("is the same from one namespace of each class as from all", () => {
    const names = ["a", "b", "c", "d", "e"];
    const some = fc.subarray(names);
    const rules = [subset("blue"), subset("canary", ...configMaps)];
    const retainedClasses = (all: string[], maps: string[]) => {
      return [
        retained(all),
        retained(
          maps.filter((name) => !all.includes(name)),
          ...configMaps,
        ),
      ];
    };
    const tables = fc
      .record({
        known: some,
        blue: some,
        canary: some,
        fenced: fc.subarray(names, { maxLength: 3 }),
        isPublic: fc.boolean(),
        retained: fc.option(fc.tuple(some, some), { nil: undefined }),
      })
      .map(({ known, blue, canary, fenced, isPublic, retained }) => {
        const members = known.map((name) => [name, [...(blue.includes(name) ? [0] : []), ...(canary.includes(name) ? [1] : [])]]);
        return table(rules, Object.fromEntries(members), {
          sharedResources: isPublic ? configMaps : [],
          fenced,
          ...(retained === undefined ? {} : { retained: retainedClasses(...retained) }),
        });
      });
    fc.assert(
      fc.property(
        tables,
        tables,
        fc.constantFrom("", "blue"),
        fc.constantFrom("pods", "configmaps"),
        (one, two, own, resource) => {
          const [before, now] = [one, two].map((routeTable) => enforced(snapshot(routeTable, { subset: own })));
          if (before === undefined || now === undefined) return;
          const change = changeBetween(before, now);
          const each = names.map((name) => change.of("", resource, name));
          const [old, next] = [readViewOf(before.view("", resource)), readViewOf(now.view("", resource))];
          const clusterScope = { was: old.ownershipOf("") === "own", is: next.ownershipOf("") === "own" };
          expect(change.of("", resource, "")).toEqual({
            gained: (!clusterScope.was && clusterScope.is) || each.some(({ gained }) => gained),
            lost:
              (clusterScope.was && !clusterScope.is) || (ownsUnknown(old) && !ownsUnknown(next)) || each.some(({ lost }) => lost),
          });
        },
      ),
      { interruptAfterTimeLimit: 2_000, numRuns: 2_000 },
    );
  });
});

describe("an object that was left out", () => {
  const target = { group: "", resource: "pods" };

  it("stays noted while its owner is unknown, and is gained once it is granted", () => {
    const leftOut = createLeftOut(createFakeClock());
    leftOut.note(target, "new");
    expect(leftOut.settle(enforced(routes(1, {})), []).has("", "pods", "")).toBe(false);
    expect(leftOut.settle(enforced(routes(2, { fenced: ["new"] })), []).has("", "pods", "")).toBe(false);
    const granted = leftOut.settle(enforced(routes(3, { blue: ["new"] })), ["new"]);
    expect([
      granted.has("", "pods", ""),
      granted.has("", "pods", "new"),
      granted.has("", "pods", "other"),
      granted.has("", "secrets", ""),
    ]).toEqual([true, true, false, false]);
    expect(leftOut.settle(enforced(routes(4, { blue: ["new"] })), []).has("", "pods", "")).toBe(false);
  });

  it("is forgotten when another subset gets its namespace", () => {
    const leftOut = createLeftOut(createFakeClock());
    leftOut.note(target, "new");
    leftOut.settle(enforced(routes(1, { defaultSubset: ["new"] })), ["new"]);
    expect(leftOut.has(target, "new")).toBe(false);
  });

  it("of a second namespace is gained after a list of one namespace", () => {
    const leftOut = createLeftOut(createFakeClock());
    leftOut.noteOnly(target, "a");
    expect(leftOut.settle(enforced(routes(1, { blue: ["a"] })), ["a"]).has("", "pods", "")).toBe(false);
    expect(leftOut.settle(enforced(routes(2, { blue: ["a", "new"] })), ["new"]).has("", "pods", "")).toBe(true);
  });

  it("outside of some hash ranges is gained after lists of these ranges", () => {
    const leftOut = createLeftOut(createFakeClock());
    const around = (name: string) => cutShards([], [name], { maxRanges: 2 })?.ranges ?? [];
    leftOut.noteRanges(target, around("one"));
    leftOut.noteRanges(target, around("two"));
    const settle = (version: number, ...blue: string[]) => leftOut.settle(enforced(routes(version, { blue })), blue.slice(-1));
    expect(settle(1, "three").has("", "pods", "")).toBe(false);
    const granted = settle(2, "three", "one");
    expect([granted.has("", "pods", ""), granted.has("", "pods", "one"), granted.has("", "secrets", "")]).toEqual([
      true,
      false,
      false,
    ]);
    // All clients must list again, so that earlier lists no longer count.
    expect(settle(3, "three", "one", "two").has("", "pods", "")).toBe(false);
  });

  it("is remembered for a bounded number of hash ranges; beyond it nothing counts as shown", () => {
    const leftOut = createLeftOut(createFakeClock());
    for (let index = 0; index < 2_000; index++)
      leftOut.noteRanges(target, cutShards([], [`n${index}`], { maxRanges: 2 })?.ranges ?? []);
    expect(leftOut.settle(enforced(routes(1, { blue: ["x"] })), ["x"]).has("", "pods", "")).toBe(true);
  });

  it("does not fill the memory when a client creates endless namespaces: beyond the bound any may be left out", () => {
    const leftOut = createLeftOut(createFakeClock(), 2);
    for (let index = 0; index < 100; index++) leftOut.note(target, `n${index}`);
    expect([leftOut.has(target, "n0"), leftOut.has(target, "n99")]).toEqual([true, true]);
    const granted = leftOut.settle(enforced(routes(1, { blue: ["n99"] })), ["n99"]);
    expect([granted.has("", "pods", ""), granted.has("", "pods", "n99"), granted.has("", "secrets", "")]).toEqual([
      true,
      true,
      true,
    ]);
    expect([leftOut.has(target, "n0"), leftOut.has(target, "n99")]).toEqual([true, false]);
  });

  it("counts for the same bound if clients invent its resource", () => {
    const leftOut = createLeftOut(createFakeClock(), 2);
    for (let index = 0; index < 100; index++) leftOut.noteOnly({ group: "", resource: `r${index}` }, "a");
    expect(leftOut.settle(enforced(routes(1, { blue: ["a"] })), ["a"]).has("", "r99", "")).toBe(true);
  });

  it("is forgotten if the manager never names its namespace, but not while the manager is silent", async () => {
    const clock = createFakeClock();
    const leftOut = createLeftOut(clock);
    leftOut.note(target, "gone");
    await clock.advance(5 * 60_000);
    leftOut.note(target, "seen again later");
    leftOut.settle(enforced(routes(1, {})), []);
    expect(leftOut.has(target, "gone")).toBe(true);
    await clock.advance(3_600_000);
    expect(leftOut.has(target, "gone")).toBe(true);
    leftOut.note(target, "seen again later");
    leftOut.settle(enforced(routes(2, {})), []);
    expect([leftOut.has(target, "gone"), leftOut.has(target, "seen again later")]).toEqual([false, true]);
  });
});

describe("a watch that starts after a change", () => {
  it("is refused until its client has listed", async () => {
    const { resync, enforce } = setup({ blue: ["a"], defaultSubset: ["b"] });
    await resync.list(pods, answered(200));
    expect(resync.mustListAgain(pods)).toBe(false);
    enforce({ blue: ["a", "b"] });
    await resync.list({ ...pods, shape: "another informer" }, answered(200));
    expect(resync.mustListAgain(pods)).toBe(true);
    await resync.list(pods, answered(500));
    expect(resync.mustListAgain(pods)).toBe(true);
    await resync.list(pods, answered(200));
    expect(resync.mustListAgain(pods)).toBe(false);
    enforce({ blue: ["a"], defaultSubset: ["b"] });
    expect(resync.mustListAgain(pods)).toBe(true);
  });

  it("continues in an untouched namespace", async () => {
    const { resync, enforce } = setup({ blue: ["a"], defaultSubset: ["b"] });
    const inA = { ...pods, namespace: "a" };
    await resync.list(inA, answered(200));
    enforce({ blue: ["a", "b"] });
    expect(resync.mustListAgain(inA)).toBe(false);
  });

  it("does not count a list with a change between its start and its answer", async () => {
    const { resync, enforce } = setup({ blue: ["a"], defaultSubset: ["b"] });
    const { promise, resolve } = Promise.withResolvers<{ status: number }>();
    const list = resync.list(pods, () => promise);
    enforce({ blue: ["a", "b"] });
    resolve({ status: 200 });
    await list;
    expect(resync.mustListAgain(pods)).toBe(true);
  });

  it("leaves no memory of the snapshots before the current one", async () => {
    const session = createEnforcer();
    const resync = createResync(session, createFakeClock());
    resync.watching(pods, () => undefined);
    const snapshots = [1, 2, 3].map((version) => {
      const next = routes(version, { blue: version === 2 ? ["a", "b"] : ["a"], defaultSubset: version === 2 ? [] : ["b"] });
      session.enforce(next);
      return new WeakRef(next);
    });
    await eventually(() => {
      collectGarbage();
      return snapshots.map((ref) => ref.deref() !== undefined).join() === "false,false,true";
    });
  });
});

it("live watches receive changes until they stop", () => {
  const { resync, enforce } = setup({ blue: ["a"], defaultSubset: ["b"] });
  const seen: string[] = [];
  const stop = resync.watching(pods, ({ gained, lost }, removed) => seen.push(`${gained} ${lost} ${removed.join()}`));
  enforce({ blue: ["a", "b"] });
  enforce({ blue: ["a"] });
  stop();
  enforce({});
  expect(seen).toEqual(["true false ", "false false b"]);
});

it("lets a client list again at once, then less often each time, and starts again after a rest", async () => {
  const clock = createFakeClock();
  const pace = createRelistPace(clock);
  const waited: number[] = [];
  for (let index = 0; index < 9; index++) {
    waited.push(pace("pods"));
    await clock.advance(waited.at(-1) ?? 0);
  }
  expect(waited).toEqual([0, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
  expect(pace("another informer")).toBe(0);
  await clock.advance(120_000);
  expect(pace("pods")).toBe(0);
});

it("remembers at most a thousand shapes", () => {
  const pace = createRelistPace(createFakeClock());
  for (let index = 0; index <= 1_000; index++) pace(`${index}`);
  expect([pace("1000"), pace("0")]).toEqual([1_000, 0]);
});
