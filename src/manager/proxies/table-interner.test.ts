import { expect, it } from "vitest";
import { snapshot, subset, table } from "../../../test/support/route-table.ts";
import type { Snapshot } from "../../route/snapshot.ts";
import { snapshotToWire } from "../../wire/snapshot-codec.ts";
import { rulesOf } from "../plan/snapshots.ts";
import { createTableInterner } from "./table-interner.ts";

const routes = () => table([subset("canary")], { a: [0], b: [] });
const digested = (more: Partial<Snapshot> = {}): Snapshot => {
  const made = snapshot(routes(), more);
  return { ...made, digest: rulesOf(made).digest };
};

it("shares the table of proxies that tell the same, and the manager's own", () => {
  const interner = createTableInterner();
  const one = interner.told(snapshotToWire(digested(), 0));
  const two = interner.told(snapshotToWire(digested({ version: 8 }), 3));
  expect(two).toMatchObject({ version: 8 });
  expect(two?.table).toBe(one?.table);
  expect(interner.own(digested({ version: 9 })).table).toBe(one?.table);
});

it("decodes a message's table once, for whatever it is told with", () => {
  const interner = createTableInterner();
  const message = snapshotToWire(digested(), 0);
  const one = interner.told(message);
  const two = interner.told({ ...message, subset: "canary", digest: "other", version: 4 });
  expect(two).toMatchObject({ subset: "canary", digest: "other", version: 4 });
  expect(two?.table).toBe(one?.table);
});

it("believes no digest: a proxy that tells other rules under it speaks for itself alone", () => {
  const interner = createTableInterner();
  const honest = digested();
  const liar = interner.told(snapshotToWire({ ...honest, table: table([], { a: [] }) }, 0));
  const told = interner.told(snapshotToWire(honest, 0));
  expect(liar?.table.rules).toEqual([]);
  expect(told?.table).toEqual(honest.table);
  expect(interner.own(honest).table).toBe(told?.table);
});

it("says nothing of what it cannot read", () => {
  const interner = createTableInterner();
  expect(interner.told({ ...snapshotToWire(digested(), 0), table: null })).toBeUndefined();
  expect(interner.told({ ...snapshotToWire(digested(), 0), version: 0 })).toBeUndefined();
});
