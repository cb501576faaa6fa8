import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { type Routes, routes } from "../../../test/support/test-routes.ts";
import { enforced } from "../session/enforcer.ts";
import type { Enforced } from "../session/session.ts";
import { createGoneNamespaces, type GoneBounds } from "./gone-namespaces.ts";
import { changeBetween } from "./view-change.ts";

const pods = { group: "", resource: "pods", namespace: "", shape: "pods" };
const GAINED = { gained: true, lost: false };
const BOTH = { gained: true, lost: true };
const NEITHER = { gained: false, lost: false };

function setup(first: Routes, bounds?: GoneBounds) {
  const clock = createFakeClock();
  const gone = createGoneNamespaces(clock, bounds);
  let version = 1;
  let before: Enforced = enforced(routes(version, first));
  const enforce = (next: Routes) => {
    const now = enforced(routes(++version, next));
    const change = gone.settle(changeBetween(before, now), before, now);
    before = now;
    return (namespace = "") => change({ ...pods, namespace });
  };
  return { clock, enforce };
}

describe("a namespace that was deleted and created again", () => {
  it("is compared with its old owner, for all namespaces and for itself alone", () => {
    const { enforce } = setup({ blue: ["a"], defaultSubset: ["n", "o"] });
    enforce({ blue: ["a"] });
    const change = enforce({ blue: ["a", "n"], defaultSubset: ["o"] });
    expect([change(), change("n"), change("o"), change("a")]).toEqual([GAINED, GAINED, NEITHER, NEITHER]);
    expect(enforce({ blue: ["a", "n"], defaultSubset: ["o"] })()).toEqual(NEITHER);
  });

  it("is remembered for ten minutes, and while the manager is away", async () => {
    const { enforce, clock } = setup({ defaultSubset: ["n", "o"] });
    enforce({});
    await clock.advance(3_600_000);
    expect(enforce({ blue: ["n"] })()).toEqual(GAINED);
    expect(enforce({ blue: ["n", "o"] })()).toEqual(NEITHER);
  });

  it("counts as touched if it left before the oldest snapshot that is kept", () => {
    const { enforce } = setup({ defaultSubset: ["n", "o1", "o2"] }, { maxSnapshots: 2 });
    enforce({ defaultSubset: ["o1", "o2"] });
    enforce({ defaultSubset: ["o2"] });
    enforce({});
    expect(enforce({ defaultSubset: ["o1"] })()).toEqual(NEITHER);
    expect(enforce({ defaultSubset: ["o1", "n"] })()).toEqual(BOTH);
  });

  it("counts as touched for ten minutes if more names left than are kept", async () => {
    const { enforce, clock } = setup({ defaultSubset: ["n", "o", "p"] }, { maxNames: 2 });
    enforce({});
    expect(enforce({ defaultSubset: ["n"] })()).toEqual(BOTH);
    await clock.advance(10 * 60_000);
    expect(enforce({ defaultSubset: ["n", "o"] })()).toEqual(NEITHER);
    expect(enforce({ defaultSubset: ["n", "o", "new"] })()).toEqual(NEITHER);
  });
});
