import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import { routes } from "../../../test/support/test-routes.ts";
import type { Snapshot } from "../../route/snapshot.ts";
import { loadMeshContract } from "../../wire/load-proto.ts";
import type { SnapshotMessage } from "../../wire/messages.ts";
import { snapshotFromWire } from "../../wire/snapshot-codec.ts";
import { greetingOf } from "./registration.ts";
import { type Held, MAX_IN_DOUBT } from "./snapshot-intake.ts";
import { createTableBytes } from "./table-bytes.ts";

const hashOf = (encoded: Uint8Array) => createHash("sha256").update(encoded).digest("hex");
const version = (number: number): Snapshot => routes(number, { blue: [`n${number}`] });

const { routeTable } = loadMeshContract();
const bytes = createTableBytes(routeTable);
const greet = (held: Held) =>
  greetingOf({ pod: { namespace: "shop", name: "shop-0", uid: "" }, proxyVersion: "", version: 9, held }, bytes);

/** Versions of what a manager that is told all tables takes for held, the acknowledged first; "anything" for what it cannot read. */
function toldOf(held: Held): (number | "anything")[] {
  const { registration, tablesFor } = greet(held);
  const { enforced, inDoubt } = registration;
  const hashes = [enforced, ...inDoubt].flatMap((message) => message?.tableHash ?? []);
  const tables = new Map(tablesFor(hashes).map((encoded) => [hashOf(encoded), routeTable.decode(Buffer.from(encoded))]));
  const read = (message: SnapshotMessage) => {
    expect(message.table).toBeNull();
    const table = tables.get(Buffer.from(message.tableHash ?? []).toString("hex")) ?? null;
    try {
      return snapshotFromWire({ ...message, table }).version;
    } catch {
      return "anything";
    }
  };
  return [...(enforced === null ? [] : [enforced]), ...inDoubt].map(read);
}

it("tells what was acknowledged, and what came into force since", () => {
  expect(toldOf({ acknowledged: undefined, inDoubt: [], mayHoldMore: false })).toEqual([]);
  expect(toldOf({ acknowledged: version(1), inDoubt: [version(2), version(3)], mayHoldMore: false })).toEqual([1, 2, 3]);
});

it("tells that it may hold anything besides what it knows of, which stays told: it is its own still", () => {
  expect(toldOf({ acknowledged: version(1), inDoubt: [], mayHoldMore: true })).toEqual([1, "anything"]);
  expect(toldOf({ acknowledged: undefined, inDoubt: [], mayHoldMore: true })).toEqual(["anything"]);
});

it("tells many in doubt as the newest and anything, so that a registration stays short", () => {
  const inDoubt = Array.from({ length: MAX_IN_DOUBT + 1 }, (_, index) => version(index + 2));
  expect(toldOf({ acknowledged: version(1), inDoubt, mayHoldMore: false })).toEqual([1, MAX_IN_DOUBT + 2, "anything"]);
});

it("tells the tables that are asked for, and no others, as bytes of their hashes", () => {
  const { registration, tablesFor } = greet({ acknowledged: version(1), inDoubt: [version(2), version(3)], mayHoldMore: true });
  const [, second] = registration.inDoubt;
  expect(tablesFor([])).toEqual([]);
  expect(tablesFor([Buffer.alloc(32)])).toEqual([]);
  const told = tablesFor([second?.tableHash ?? Buffer.alloc(0), Buffer.alloc(32)]);
  expect(told.map(hashOf)).toEqual([Buffer.from(second?.tableHash ?? []).toString("hex")]);
});

it("names equal tables by one hash, however they number their classes", () => {
  const one = routes(1, { blue: ["a"], rest: ["b"] });
  const [first = [], second = [], ...others] = one.table.classes;
  const swapped = new Map([...one.table.classOf].map(([name, index]) => [name, index < 2 ? 1 - index : index]));
  const classes = [second, first, ...others, [0]]; // and one of which no namespace is left
  const two = { ...one, table: { ...one.table, classes, classOf: swapped } };
  expect(one.table.classes).toHaveLength(2);
  expect(bytes.hashOf(two.table)).toEqual(bytes.hashOf(one.table));
  expect(bytes.hashOf(version(2).table)).not.toEqual(bytes.hashOf(one.table));
});

it("tells equal tables once: a manager reads as many as it has asked for", () => {
  const [acknowledged, other, again, newest] = [routes(1, { blue: ["a"] }), version(2), routes(3, { blue: ["a"] }), version(4)];
  const { registration, tablesFor } = greet({ acknowledged, inDoubt: [other, again, newest], mayHoldMore: false });
  const hashes = [registration.enforced, ...registration.inDoubt].map((message) => Buffer.from(message?.tableHash ?? []));
  expect(hashes.map(String)[0]).toBe(hashes.map(String)[2]);
  expect(tablesFor(hashes).map(hashOf)).toEqual([...new Set(hashes.map((hash) => hash.toString("hex")))]);
});
