import { expect, it } from "vitest";
import { snapshot, subset, table } from "../../../test/support/route-table.ts";
import { createDeltaCache } from "./delta-cache.ts";

const rules = [subset("canary")];
const base = snapshot(table(rules, { pilot: [0], other: [] }), { version: 1, digest: "base" });
const next = snapshot(table(rules, { pilot: [], other: [] }), { version: 2, digest: "next" });

it("computes the difference once for all who hold the same table", () => {
  const deltas = createDeltaCache();
  const first = deltas.between(base, next);
  expect(first).toBeDefined();
  expect(deltas.between({ ...base }, next)).toBe(first);
});

it("a proxy that lies about its table under another's digest does not spoil what the other is sent", () => {
  const deltas = createDeltaCache();
  const honest = createDeltaCache().between(base, next);
  deltas.between({ ...base, table: next.table }, next); // "I hold that already": nothing would move
  expect(deltas.between(base, next)).toEqual(honest);
});
