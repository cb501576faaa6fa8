import fc from "fast-check";
import { expect, it, vi } from "vitest";
import { budget } from "../../../test/support/fuzz.ts";
import { fence, group, limit, retained, sharded, subset, table, tableFromBytes } from "../../../test/support/route-table.ts";
import type { RouteTable } from "../ownership/table.ts";
import { canonicalJson, hashBytes, tableHash, tableToBytes } from "./table-json.ts";

const RULES = [sharded(group("apps")), limit(), subset("canary", group("", "configmaps")), fence(group("batch"))];
const name = fc.oneof(fc.stringMatching(/^[a-z0-9-]{0,63}$/), fc.string(), fc.string({ unit: "binary" }));
const anyTable = fc.record({
  members: fc.dictionary(name, fc.subarray([0, 1, 2, 3])),
  fenced: fc.array(name),
  kept: fc.array(name),
});

it("a table comes back from its bytes with the same owners and the same hash, with any names", () => {
  fc.assert(
    fc.property(anyTable, ({ members, fenced, kept }) => {
      const of = table(RULES, members, { fenced, ...(kept.length > 0 && { retained: [retained(kept, group("apps"))] }) });
      const read = tableFromBytes(tableToBytes(of));
      const rulesOf = ({ classes, classOf }: RouteTable) => new Map([...classOf].map(([at, index]) => [at, classes[index]]));
      expect({ ...read, classes: [], classOf: rulesOf(read) }).toEqual({ ...of, classes: [], classOf: rulesOf(of) });
      expect(tableHash(read)).toEqual(tableHash(of));
      expect(tableHash(of)).toEqual(hashBytes(tableToBytes(of)));
    }),
    budget(),
  );
});

it("the classes of many tables are made once for all their bytes, and once for all their hashes", () => {
  const of = table(RULES, Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`n${at}`, [at % 3]])));
  const shards = Array.from({ length: 64 }, (_, at) => ({ ...of, fenced: new Set([`n${at}`]) }));
  const stringify = vi.spyOn(JSON, "stringify");
  const bytes = shards.map(tableToBytes);
  const hashes = shards.map((shard) => tableHash(shard).toString("hex"));
  const rows = stringify.mock.calls.filter(([value]) => JSON.stringify(value)?.includes("places"));
  stringify.mockRestore();
  expect(rows).toHaveLength(1);
  expect([new Set(hashes).size, new Set(bytes.map(String)).size]).toEqual([64, 64]);
});

it("canonical JSON does not depend on the order of keys, and leaves out what is undefined", () => {
  const value = { b: [1, { d: null, c: "x" }], a: undefined, A: true };
  expect(canonicalJson(value)).toBe('{"A":true,"b":[1,{"c":"x","d":null}]}');
  expect(canonicalJson({ A: true, b: [1, { c: "x", d: null }] })).toBe(canonicalJson(value));
});
