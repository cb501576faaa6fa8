import { expect, it } from "vitest";
import { startRouteHandler } from "../../../test/support/route-handler.ts";
import { readBody } from "../../../test/support/route-table.ts";
import { routes } from "../../../test/support/test-routes.ts";
import { deltaUpdate, wholeUpdate } from "../../../test/support/updates.ts";
import type { UpdateMessage } from "../../mesh/contract/messages.ts";
import { routeDigest } from "../../mesh/contract/route-type.ts";
import { TABLE_DELTA, type TableDelta } from "../../mesh/contract/table-delta.ts";
import { OWN_WRITES_MS } from "../../mesh/link/own-writes.ts";
import { readViewOf, type Snapshot } from "../../mesh/ownership/snapshot.ts";

const NAMES = Array.from({ length: 20 }, (_, index) => `n${index}`);
const before = routes(1, { blue: ["a"], defaultSubset: NAMES });
const after = routes(2, { blue: ["a", "b"], defaultSubset: NAMES });

/** The delta with another content. */
function spoilt(update: UpdateMessage, more: Partial<TableDelta>): UpdateMessage {
  if (update.resource === null) throw new Error("a resource was expected");
  const body = Buffer.from(JSON.stringify({ ...TABLE_DELTA.parse(readBody(update.resource.body)), ...more }));
  return { ...update, resource: { ...update.resource, body } };
}

function setup() {
  const saved: Snapshot[] = [];
  /** A save that fails may have written. */
  const disk = { fails: false };
  const answered: string[] = [];
  const { clock, enforcer, lastWrites, routeHandler } = startRouteHandler({
    load: async () => saved.at(-1),
    save: async (snapshot) => {
      saved.push(snapshot);
      if (disk.fails) throw new Error("EIO: the folder cannot be synced");
    },
  });
  const takeUpdate = (update: UpdateMessage) =>
    routeHandler.take(update, {
      ack: () => void answered.push(`ack ${update.nonce}`),
      nack: (problems) => void answered.push(`nack ${update.nonce} ${problems.join()}`),
      needsWhole: () => void answered.push(`whole ${update.nonce}`),
    });
  return {
    clock,
    enforcer,
    lastWrites,
    routeHandler,
    saved,
    disk,
    answered,
    takeUpdate,
    take: (snapshot: Snapshot, nonce: number) => takeUpdate(wholeUpdate(snapshot, nonce)),
    takeDelta: (nonce: number, more: Partial<TableDelta> = {}) => takeUpdate(spoilt(deltaUpdate(before, after, nonce), more)),
  };
}

it("puts a delta in force as the snapshot that it leads to, stores the whole, tells the whole, and acknowledges it", async () => {
  const { clock, enforcer, routeHandler, saved, answered, take, takeDelta } = setup();
  take(before, 1);
  await clock.flush();
  takeDelta(2);
  await clock.flush();
  expect(answered).toEqual(["ack 1", "ack 2"]);
  expect(enforcer.current?.snapshot).toMatchObject({ version: 2, digest: "digest-2", subset: "blue", lockName: "shop-lock" });
  expect(enforcer.current?.view("", "pods").ownershipOf("b")).toBe("own");
  expect(saved.map(({ digest }) => digest)).toEqual(["digest-1", "digest-2"]);
  expect(saved.at(-1)).toBe(routeHandler.claims.acknowledged);
  expect(saved.at(-1)?.table.classOf.size).toBe(22);
});

it("asks for the whole, and changes nothing, if the delta's base is not in force, or if there is none", async () => {
  const { clock, enforcer, saved, answered, take, takeDelta } = setup();
  takeDelta(1);
  take(routes(1, { blue: ["a"], defaultSubset: NAMES }, { digest: "other" }), 2);
  await clock.flush();
  let changes = 0;
  enforcer.onChange(() => changes++);
  takeDelta(3);
  await clock.flush();
  expect(answered).toEqual(["whole 1", "ack 2", "whole 3"]);
  expect([changes, enforcer.current?.snapshot.digest, saved.length]).toEqual([0, "other", 1]);
});

it("asks for the whole if the delta does not fit a base of the same digest", async () => {
  const { clock, enforcer, answered, take, takeDelta } = setup();
  take(before, 1);
  await clock.flush();
  takeDelta(2, { removed: ["never-there"] });
  takeDelta(3, { classes: [{ rules: [9], places: ["b"] }] });
  expect(answered).toEqual(["ack 1", "whole 2", "whole 3"]);
  expect(enforcer.current?.snapshot.version).toBe(1);
});

it("takes a delta to what is in force and not yet acknowledged, whose ACK then is the only one", async () => {
  const { clock, enforcer, answered, take, takeDelta, routeHandler } = setup();
  const done = enforcer.beginWrite("z");
  take(before, 1);
  await clock.flush();
  takeDelta(2);
  await clock.flush();
  expect([answered, routeHandler.claims.inDoubt.map(({ version }) => version)]).toEqual([[], [1, 2]]);
  done();
  await clock.flush();
  expect([answered, routeHandler.claims.inDoubt]).toEqual([["ack 2"], []]);
});

it("never goes back to an older version by a delta", async () => {
  const { clock, enforcer, answered, take, takeDelta } = setup();
  take({ ...before, version: 7 }, 1);
  await clock.flush();
  takeDelta(2);
  expect(answered[1]).toMatch(/^nack 2 version: 2 is older than 7/);
  expect(enforcer.current?.snapshot.version).toBe(7);
});

it("stores again what is stored, when what is beside it changes, and nothing that is not acknowledged yet", async () => {
  const { clock, enforcer, routeHandler, saved, take } = setup();
  routeHandler.storeAgain();
  await clock.flush();
  expect(saved).toHaveLength(0);
  take(before, 1);
  await clock.flush();
  routeHandler.storeAgain();
  await clock.flush();
  expect(saved.map(({ version }) => version)).toEqual([1, 1]);
  enforcer.beginWrite("z");
  take(after, 2);
  routeHandler.storeAgain();
  await clock.flush();
  expect(saved).toHaveLength(2);
});

it("stores what it has stored before again, if a save since has failed: nobody knows what is there", async () => {
  const { clock, saved, disk, answered, take } = setup();
  take(before, 1);
  await clock.flush();
  disk.fails = true;
  take(after, 2);
  await clock.flush();
  take({ ...before, version: 3 }, 3);
  await clock.advance(2_000);
  expect(answered).toEqual(["ack 1"]);
  disk.fails = false;
  await clock.advance(2_000);
  expect([answered, saved.at(-1)?.version]).toEqual([["ack 1", "ack 3"], 3]);
});

it("tries again to store what is beside the snapshot, and acknowledges nothing until then", async () => {
  const { clock, routeHandler, saved, disk, answered, take } = setup();
  take(before, 1);
  await clock.flush();
  disk.fails = true;
  routeHandler.storeAgain();
  await clock.flush();
  take({ ...before, version: 2 }, 2);
  await clock.advance(2_000);
  expect(answered).toEqual(["ack 1"]);
  disk.fails = false;
  await clock.advance(2_000);
  expect([answered, saved.at(-1)?.version]).toEqual([["ack 1", "ack 2"], 2]);
});

it("killed with a gain in force that is not stored yet, the next process tells that it may hold more than it knows", async () => {
  const first = setup();
  first.take(before, 1);
  await first.clock.flush();
  first.disk.fails = true;
  first.take(after, 2);
  expect(first.enforcer.current?.view("", "pods").ownershipOf("b")).toBe("own");
  const next = setup();
  next.saved.push(before);
  await next.routeHandler.restore(false);
  expect(next.routeHandler.claims).toEqual({
    acknowledged: { ...before, digest: routeDigest(before) },
    inDoubt: [],
    mayHoldMore: true,
  });
});

it("enforces what a proxy of an earlier version left out of the routes that it stored", async () => {
  const frozen = { ...before, frozen: [{ namespace: "a", reason: "repairs" }] };
  const sent: Snapshot = { ...frozen, digest: routeDigest(frozen) };
  const { enforcer, routeHandler, saved, take, clock } = setup();
  saved.push({ ...before, digest: sent.digest });
  await routeHandler.restore(true);
  const { view } = enforcer.current ?? {};
  expect(view?.("", "pods").frozen).toBeUndefined();
  take(sent, 1);
  await clock.flush();
  expect(enforcer.current?.view("", "pods").frozen).toEqual(new Map([["a", "repairs"]]));
});

it("refuses a body that is no route, and an update without a resource", () => {
  const { takeUpdate, answered, enforcer } = setup();
  takeUpdate(wholeUpdate(before, 1, { body: Buffer.from([0xff, 0xff]) }));
  takeUpdate({ ...wholeUpdate(before, 2), resource: null });
  expect(answered).toEqual([expect.stringMatching(/^nack 1 body: /), "nack 2 resource: missing"]);
  expect(enforcer.current).toBeUndefined();
});

it("shows what the pod has just written to and lost until its events have come, and acknowledges the loss before", async () => {
  const { clock, enforcer, lastWrites, answered, take } = setup();
  const ownershipOfA = () => {
    const view = enforcer.current?.view("", "pods");
    return view && [view.ownershipOf("a"), readViewOf(view).ownershipOf("a")];
  };
  take(before, 1);
  await clock.flush();
  lastWrites.begin("a")();
  const endRenewal = enforcer.beginRenewal();
  take(routes(2, { defaultSubset: ["a", ...NAMES] }), 2);
  await clock.flush();
  expect([answered, ownershipOfA()]).toEqual([
    ["ack 1", "ack 2"],
    ["other-subset", "own"],
  ]);
  await clock.advance(OWN_WRITES_MS * 2);
  endRenewal();
  expect(ownershipOfA()).toEqual(["other-subset", "own"]);
  await clock.advance(OWN_WRITES_MS * 2);
  expect(ownershipOfA()).toEqual(["other-subset", "other-subset"]);
});
