import { describe, expect, it } from "vitest";
import { routes as made } from "../../../test/support/test-routes.ts";
import { readViewOf } from "../ownership/snapshot.ts";
import { viewOf } from "../ownership/view-of.ts";
import { heldClaims } from "./held-claims.ts";
import {
  INHERITED_WRITES_MS,
  inheritedWritesMs,
  NO_ROUTES,
  type ProxyRoutes,
  type RoutesEvent,
  stepRoutes,
} from "./proxy-routes.ts";

const first = made(1, { blue: ["a"] });
const second = made(2, { blue: ["a", "b"] });
const STORED: RoutesEvent = { kind: "stored", isStored: true };
const update = (number: number, routes = first, ...written: string[]): RoutesEvent => ({
  kind: "update",
  update: number,
  routes,
  written: new Set(written),
});

/** The effects of the events, one after the other, and the last state. */
function stepped(events: readonly RoutesEvent[], from: ProxyRoutes = NO_ROUTES, nowMs = 0) {
  const effects: string[] = [];
  let state = from;
  for (const event of events) {
    const next = stepRoutes(state, event, nowMs);
    state = next.state;
    effects.push(...next.effects.map(({ kind, ...rest }) => ("update" in rest ? `${kind} ${rest.update}` : kind)));
  }
  return { state, effects };
}

describe("routes of an update", () => {
  it("are enforced, then stored, then acknowledged, and the file is not believed before they are enforced", () => {
    const { effects, state } = stepped([update(1), { kind: "drained" }, STORED]);
    expect(effects).toEqual(["mark-unstored", "enforce", "drain", "store", "acknowledge 1"]);
    expect([state.stage, heldClaims(state, 0)]).toEqual(["held", { acknowledged: first, inDoubt: [], mayHoldMore: false }]);
  });

  it("are claimed beside the acknowledged ones until they are acknowledged", () => {
    const held = stepped([update(1), { kind: "drained" }, STORED]).state;
    const { state, effects } = stepped([update(2, second)], held);
    expect(heldClaims(state, 0)).toEqual({ acknowledged: first, inDoubt: [second], mayHoldMore: false });
    expect(effects).toEqual(["mark-unstored", "enforce", "drain"]);
  });

  it("take the place of routes that are being stored, which are then not acknowledged", () => {
    const events: RoutesEvent[] = [update(1), { kind: "drained" }, update(2, second), STORED, { kind: "drained" }, STORED];
    const { effects, state } = stepped(events);
    expect(effects.filter((effect) => effect.startsWith("acknowledge"))).toEqual(["acknowledge 2"]);
    expect(state.file).toMatchObject({ kind: "idle", digest: second.digest });
  });

  it("with rules that are in force change the version alone, and are acknowledged without another save", () => {
    const held = stepped([update(1), { kind: "drained" }, STORED]).state;
    const { effects } = stepped([update(2, { ...first, version: 5 }), { kind: "drained" }], held);
    expect(effects).toEqual(["relabel", "drain", "acknowledge 2"]);
  });

  it("are stored again after a failure, and acknowledged then", () => {
    const { effects } = stepped([update(1), { kind: "drained" }, { kind: "stored", isStored: false }, { kind: "retry" }, STORED]);
    expect(effects.slice(3)).toEqual(["store", "retry-later", "store", "acknowledge 1"]);
  });

  it("that came during the failed save do not wait for the next attempt", () => {
    const failed = stepped([update(1), { kind: "drained" }, { kind: "stored", isStored: false }]).state;
    const { effects, state } = stepped([update(2, second), { kind: "drained" }], failed);
    expect(effects).toEqual(["mark-unstored", "enforce", "drain", "store"]);
    expect(stepped([{ kind: "retry" }], state).effects).toEqual([]);
  });
});

describe("a process that starts", () => {
  it("enforces what is stored, and acknowledges nothing while writes of the killed process may take effect", () => {
    const { state, effects } = stepped([
      { kind: "started", stored: first, inheritsWrites: true },
      update(1, second),
      { kind: "drained" },
    ]);
    expect(effects).toEqual(["enforce", "mark-unstored", "enforce", "drain", "settle"]);
    expect(heldClaims(state, INHERITED_WRITES_MS - 1).mayHoldMore).toBe(true);
    expect(stepped([{ kind: "settled" }], state, INHERITED_WRITES_MS - 1).effects).toEqual(["settle"]);
    expect(stepped([{ kind: "settled" }, STORED], state, INHERITED_WRITES_MS).effects).toEqual(["store", "acknowledge 1"]);
  });
});

it("a process that was killed may have requests in each cluster of the routes, for as long as that says", () => {
  const cluster = (owner: string, drainMs: number) => ({ name: "eu", servers: ["eu:443"], drainMs, owner });
  expect(inheritedWritesMs({ clusters: [cluster("blue", 60_000), cluster("green", 90_000)] })).toBe(90_000);
  expect(inheritedWritesMs({ clusters: [cluster("blue", 1_000)] })).toBe(INHERITED_WRITES_MS);
  expect([first, undefined].map(inheritedWritesMs)).toEqual([INHERITED_WRITES_MS, INHERITED_WRITES_MS]);
  // The clusters of routes that come later count too, also if the file names none.
  const later = { ...second, clusters: [cluster("green", 90_000)] };
  const started = stepped([{ kind: "started", stored: first, inheritsWrites: true }]).state;
  expect(heldClaims(started, INHERITED_WRITES_MS).mayHoldMore).toBe(false);
  const drained = stepped([update(1, later), { kind: "drained" }], started, 50_000);
  expect(drained.effects.slice(-1)).toEqual(["settle"]);
  expect(stepped([{ kind: "settled" }, STORED], drained.state, 90_000).effects).toEqual(["store", "acknowledge 1"]);
});

describe("other content of the file", () => {
  it("is stored with the routes in force, without another acknowledgement", () => {
    const held = stepped([update(1), { kind: "drained" }, STORED]).state;
    expect(stepped([{ kind: "outdated" }, STORED], held).effects).toEqual(["store"]);
  });

  it("waits for routes that are still to be stored, and is stored once more if it changes during a save", () => {
    expect(stepped([update(1), { kind: "outdated" }]).effects).not.toContain("store");
    const saving = stepped([update(1), { kind: "drained" }]).state;
    expect(stepped([{ kind: "outdated" }, STORED, STORED], saving).effects).toEqual(["acknowledge 1", "store"]);
  });
});

describe("a place that the pod has just written to, and loses", () => {
  const both = made(1, { blue: ["a", "b", "d"] });
  const lost = made(2, { blue: ["a", "d"], defaultSubset: ["b"] });
  const more = made(3, { blue: ["a", "c", "d"], defaultSubset: ["b"] });
  const lostToo = made(4, { blue: ["a"], defaultSubset: ["b", "d"] });
  const held = stepped([update(1, both), { kind: "drained" }, STORED]).state;
  const DRAINED: RoutesEvent = { kind: "drained" };
  const SHOWN: RoutesEvent = { kind: "own-writes-shown" };
  /** The effects: with the namespaces that clients see after `enforce` and `relabel`, and with the times to wait. */
  const seen = (events: readonly RoutesEvent[], from = held, nowMs = 0) => {
    const effects: string[] = [];
    let state = from;
    for (const event of events) {
      const next = stepRoutes(state, event, nowMs);
      state = next.state;
      for (const effect of next.effects) {
        const view = "routes" in effect && effect.kind !== "store" ? readViewOf(viewOf(effect.routes, "", "pods")) : undefined;
        const allShown = effect.kind === "store" ? [String(effect.isAllShown)] : [];
        const times = effect.kind === "show-own-writes" ? [effect.ms, effect.mostMs] : [];
        effects.push([effect.kind, ...[...(view?.namespaces().own ?? [])].sort(), ...allShown, ...times].join(" "));
      }
    }
    return { state, effects };
  };

  it("stays readable until clients were shown its last events, and nothing waits for that", () => {
    const { effects, state } = seen([update(2, lost, "b"), DRAINED, STORED]);
    expect(effects).toEqual([
      "mark-unstored",
      "enforce a b d",
      "show-own-writes 6000 6000",
      "drain",
      "show-own-writes 1000 6000",
      "store false",
      "acknowledge",
    ]);
    expect(heldClaims(state, 0)).toEqual({ acknowledged: lost, inDoubt: [], mayHoldMore: false });
    expect(seen([SHOWN, STORED], state).effects).toEqual(["mark-unstored", "enforce a d", "store true"]);
  });

  it("is not writable", () => {
    const { state } = seen([update(2, lost, "b")]);
    expect(viewOf(state.retaining?.routes ?? both, "", "pods").ownershipOf("b")).toBe("other-subset");
  });

  it("goes at once if the pod has not written to it", () => {
    expect(seen([update(2, lost, "a", "other")]).effects).toEqual(["mark-unstored", "enforce a d", "drain"]);
  });

  it("goes together with all that is lost, so that clients are told once", () => {
    const { effects, state } = seen([update(2, lostToo, "b")]);
    expect(effects[1]).toBe("enforce a b d");
    expect(seen([SHOWN], state).effects).toEqual(["mark-unstored", "enforce a"]);
  });

  it("goes in time, also while writes hang that the routes refuse", () => {
    const { state } = seen([update(2, lost, "b")]);
    expect(state.stage).toBe("draining");
    expect(seen([SHOWN], state).effects).toEqual(["mark-unstored", "enforce a d"]);
  });

  it("stays while other routes come, which are in force at once and do not prolong it", () => {
    const { state } = seen([update(2, lost, "b"), DRAINED]);
    const next = seen([update(3, more, "b"), DRAINED], state, 500);
    expect(next.effects).toEqual(["mark-unstored", "enforce a b c d", "drain"]);
    expect(seen([SHOWN], next.state, 1_000).effects).toEqual(["mark-unstored", "enforce a c d"]);
  });

  it("is followed by a later loss within the time of the first, and waits for its writes too", () => {
    const { state } = seen([update(2, lost, "b"), DRAINED]);
    const next = seen([update(3, lostToo, "d"), DRAINED], state, 5_500);
    expect(next.effects.slice(1)).toEqual(["enforce a b d", "show-own-writes 500 500", "drain", "show-own-writes 500 500"]);
    expect(seen([update(4, more, "b")], next.state, 6_000).effects[1]).toBe("enforce a c d");
  });

  it("stays when the same routes come once more, for no longer than before", () => {
    const again = update(3, { ...lost, version: 7 });
    const { effects, state } = seen([update(2, lost, "b"), DRAINED, again, DRAINED]);
    expect(effects.slice(6)).toEqual(["relabel a b d", "drain"]);
    expect(seen([SHOWN], state).effects).toEqual(["mark-unstored", "enforce a d"]);
  });

  it("is the pod's again at once if it comes back", () => {
    const { effects, state } = seen([update(2, lost, "b"), DRAINED, update(3, both, "b")]);
    expect([effects.at(-2), state.retaining]).toEqual(["enforce a b d", undefined]);
    expect(seen([SHOWN], state).effects).toEqual([]);
  });

  it("is retained by the manager's rules where the manager retains it", () => {
    const restart = made(2, { blue: ["a", "d"], defaultSubset: ["b"], retained: ["b"] });
    expect(seen([update(2, restart, "b")]).state.retaining).toBeUndefined();
  });
});
