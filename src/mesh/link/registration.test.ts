import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import { tableFromBytes } from "../../../test/support/route-table.ts";
import { routes } from "../../../test/support/test-routes.ts";
import { CAPABILITIES } from "../../../test/support/updates.ts";
import type { ResourceMessage } from "../contract/messages.ts";
import { claimedRoute } from "../contract/route-type.ts";
import { tableHash } from "../contract/table-json.ts";
import type { Snapshot } from "../ownership/snapshot.ts";
import type { Claims } from "./held-claims.ts";
import { MAX_IN_DOUBT } from "./proxy-routes.ts";
import { greetingOf } from "./registration.ts";

const hashOf = (encoded: Uint8Array) => createHash("sha256").update(encoded).digest("hex");
const version = (number: number): Snapshot => routes(number, { blue: [`n${number}`] });
const hexOf = (route: ResourceMessage | undefined) =>
  Buffer.from((route && claimedRoute(route).tableHashes[0]) ?? []).toString("hex");

const greet = (claims: Claims) => {
  const pod = { namespace: "shop", name: "shop-0", uid: "" };
  const { registration, tablesFor } = greetingOf({
    pod,
    proxyVersion: "",
    capabilities: CAPABILITIES,
    streamNumber: 1,
    epoch: 0,
    version: 9,
    claims,
  });
  const { acknowledged, inDoubt, mayHoldMore } = registration.route ?? { acknowledged: null, inDoubt: [], mayHoldMore: true };
  return { registration, tablesFor, mayHoldMore, named: [...(acknowledged === null ? [] : [acknowledged]), ...inDoubt] };
};

/**
 * Versions of what a manager that is sent all tables takes for held, the acknowledged first; "anything" if
 * there may be more.
 */
function toldOf(claims: Claims): (number | "anything")[] {
  const { named, mayHoldMore, tablesFor } = greet(claims);
  const hashes = named.flatMap((route) => claimedRoute(route).tableHashes);
  const tables = new Map(tablesFor(hashes).map((encoded) => [hashOf(encoded), tableFromBytes(encoded)]));
  const versions = named.map(
    (route) => claimedRoute(route).withTables((hash) => tables.get(Buffer.from(hash).toString("hex"))).version,
  );
  return [...versions, ...(mayHoldMore ? ["anything" as const] : [])];
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
  const { named, tablesFor } = greet({ acknowledged: version(1), inDoubt: [version(2), version(3)], mayHoldMore: true });
  const [, second] = named;
  expect(tablesFor([])).toEqual([]);
  expect(tablesFor([Buffer.alloc(32)])).toEqual([]);
  const told = tablesFor([Buffer.from(hexOf(second), "hex"), Buffer.alloc(32)]);
  expect(told.map(hashOf)).toEqual([hexOf(second)]);
});

it("names equal tables by one hash, however they number their classes", () => {
  const one = routes(1, { blue: ["a"], defaultSubset: ["b"] });
  const [first = [], second = [], ...others] = one.table.classes;
  const swapped = new Map([...one.table.classOf].map(([name, index]) => [name, index < 2 ? 1 - index : index]));
  const classes = [second, first, ...others, [0]]; // and one of which no namespace is left
  const two = { ...one, table: { ...one.table, classes, classOf: swapped } };
  expect(one.table.classes).toHaveLength(2);
  expect(tableHash(two.table)).toEqual(tableHash(one.table));
  expect(tableHash(version(2).table)).not.toEqual(tableHash(one.table));
});

it("tells equal tables once: a manager reads as many as it has asked for", () => {
  const [acknowledged, other, again, newest] = [routes(1, { blue: ["a"] }), version(2), routes(3, { blue: ["a"] }), version(4)];
  const { named, tablesFor } = greet({ acknowledged, inDoubt: [other, again, newest], mayHoldMore: false });
  const hashes = named.map(hexOf);
  expect(hashes[0]).toBe(hashes[2]);
  expect(tablesFor(hashes.map((hash) => Buffer.from(hash, "hex"))).map(hashOf)).toEqual([...new Set(hashes)]);
});

it("lists what the proxy supports", () => {
  const { registration } = greet({ acknowledged: undefined, inDoubt: [], mayHoldMore: false });
  expect(registration).toMatchObject({ capabilities: CAPABILITIES, streamNumber: 1, epoch: 0 });
  expect(registration.route).toEqual({ version: 9, acknowledged: null, inDoubt: [], mayHoldMore: false });
});
