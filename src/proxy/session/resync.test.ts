import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { type Routes, routes } from "../../../test/support/test-routes.ts";
import { createEnforcer, enforced } from "./enforcer.ts";
import { createLeftOut } from "./left-out.ts";
import { createResync } from "./resync.ts";
import { changeBetween } from "./view-change.ts";

const pods = { group: "", resource: "pods", namespace: "", shape: "pods" };

async function setup(first: Routes) {
  const clock = createFakeClock();
  const session = createEnforcer();
  const resync = createResync(session, clock);
  await clock.advance(60_000);
  let version = 1;
  const enforce = (next: Routes) => session.enforce(routes(version++, next));
  enforce(first);
  return { clock, resync, enforce };
}

describe("what a route change means for a resource", () => {
  const change = (before: Routes, now: Routes, namespace = "") =>
    changeBetween(enforced(routes(1, before)), enforced(routes(2, now))).of("", "pods", namespace);

  it.each<[string, Routes, Routes, boolean, boolean]>([
    ["nothing", { blue: ["a"], rest: ["b"] }, { blue: ["a"], rest: ["b"] }, false, false],
    ["a gain", { blue: ["a"], rest: ["b"] }, { blue: ["a", "b"] }, true, false],
    ["a loss", { blue: ["a", "b"] }, { blue: ["a"], rest: ["b"] }, false, true],
    ["a fence", { blue: ["a"] }, { blue: ["a"], fenced: ["a"] }, false, true],
    ["a grant after a fence", { fenced: ["a"] }, { blue: ["a"] }, true, false],
    ["a new namespace", { blue: ["a"] }, { blue: ["a", "new"] }, false, false],
    ["a deleted namespace", { blue: ["a", "b"] }, { blue: ["a"] }, false, false],
  ])("%s", (_, before, now, gained, lost) => {
    expect(change(before, now)).toEqual({ gained, lost });
  });

  it("touches a collection in one namespace only by that one", () => {
    const before = { blue: ["a"], rest: ["b"] };
    const now = { blue: ["a", "b"] };
    expect(change(before, now, "a")).toEqual({ gained: false, lost: false });
    expect(change(before, now, "b")).toEqual({ gained: true, lost: false });
  });

  it("is found from one namespace a class as it would be from all", () => {
    const names = ["a", "b", "c", "d", "e"];
    const any = fc.record({ blue: fc.subarray(names), rest: fc.subarray(names), fenced: fc.subarray(names, { maxLength: 2 }) });
    const clean = ({ blue, rest, fenced }: { blue: string[]; rest: string[]; fenced: string[] }) => ({
      blue,
      rest: rest.filter((name) => !blue.includes(name)),
      fenced,
    });
    fc.assert(
      fc.property(any, any, (one, two) => {
        const [before, now] = [clean(one), clean(two)];
        const each = names.map((name) => change(before, now, name));
        expect(change(before, now)).toEqual({ gained: each.some(({ gained }) => gained), lost: each.some(({ lost }) => lost) });
      }),
      { interruptAfterTimeLimit: 2_000 },
    );
  });
});

describe("what was left out", () => {
  const target = { group: "", resource: "pods" };

  it("stays noted while nobody knows the owner, and is told once it is granted", () => {
    const leftOut = createLeftOut();
    leftOut.note(target, "new");
    expect(leftOut.settle(enforced(routes(1, {})))("", "pods", "")).toBe(false);
    expect(leftOut.settle(enforced(routes(2, { fenced: ["new"] })))("", "pods", "")).toBe(false);
    const granted = leftOut.settle(enforced(routes(3, { blue: ["new"] })));
    expect([
      granted("", "pods", ""),
      granted("", "pods", "new"),
      granted("", "pods", "other"),
      granted("", "secrets", ""),
    ]).toEqual([true, true, false, false]);
    expect(leftOut.settle(enforced(routes(4, { blue: ["new"] })))("", "pods", "")).toBe(false);
  });

  it("is forgotten when another subset gets it", () => {
    const leftOut = createLeftOut();
    leftOut.note(target, "new");
    leftOut.settle(enforced(routes(1, { rest: ["new"] })));
    expect(leftOut.has(target, "new")).toBe(false);
  });

  it("by a list of one namespace alone is told when a second one comes", () => {
    const leftOut = createLeftOut();
    leftOut.noteOnly(target, "a");
    expect(leftOut.settle(enforced(routes(1, { blue: ["a"] })))("", "pods", "")).toBe(false);
    expect(leftOut.settle(enforced(routes(2, { blue: ["a", "new"] })))("", "pods", "")).toBe(true);
  });

  it("does not fill the memory when somebody creates namespaces without end", () => {
    const leftOut = createLeftOut(2);
    for (let index = 0; index < 100; index++) leftOut.note(target, `n${index}`);
    expect(leftOut.has(target, "n99")).toBe(false);
    expect(leftOut.settle(enforced(routes(1, { blue: ["n99"] })))("", "pods", "")).toBe(true);
  });
});

describe("a watch that starts after a change", () => {
  it("must list again until its client has, and no longer than the window", async () => {
    const { resync, enforce, clock } = await setup({ blue: ["a"], rest: ["b"] });
    expect(resync.mustListAgain(pods)).toBe(false);
    enforce({ blue: ["a", "b"] });
    expect(resync.mustListAgain(pods)).toBe(true);
    resync.listBegun({ ...pods, shape: "another informer" });
    expect(resync.mustListAgain(pods)).toBe(true);
    resync.listBegun(pods);
    expect(resync.mustListAgain(pods)).toBe(false);
    enforce({ blue: ["a"], rest: ["b"] });
    expect(resync.mustListAgain(pods)).toBe(true);
    await clock.advance(30_000);
    expect(resync.mustListAgain(pods)).toBe(false);
  });

  it("in an untouched namespace goes on", async () => {
    const { resync, enforce } = await setup({ blue: ["a"], rest: ["b"] });
    enforce({ blue: ["a", "b"] });
    expect(resync.mustListAgain({ ...pods, namespace: "a" })).toBe(false);
  });

  it("just after a restart must list again for a new namespace too, since nobody knows what was left out", () => {
    const session = createEnforcer();
    const resync = createResync(session, createFakeClock());
    session.enforce(routes(1, { blue: ["a"] }));
    session.enforce(routes(2, { blue: ["a", "new"] }));
    expect(resync.mustListAgain(pods)).toBe(true);
  });
});

it("live watches are told until they stop", async () => {
  const { resync, enforce } = await setup({ blue: ["a"], rest: ["b"] });
  const seen: string[] = [];
  const stop = resync.watching(pods, ({ gained, lost }, removed) => seen.push(`${gained} ${lost} ${removed.join()}`));
  enforce({ blue: ["a", "b"] });
  enforce({ blue: ["a"] });
  stop();
  enforce({});
  expect(seen).toEqual(["true false ", "false false b"]);
});
