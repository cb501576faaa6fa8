import { expect, it } from "vitest";
import { sharded, subset, table } from "../../../test/support/route-table.ts";
import { countMoves } from "./moves.ts";

const group = { apiGroup: "", resources: ["configmaps"] };
const rules = [sharded(group as never), subset("a"), subset("b")];
const owned = (owners: Record<string, "a" | "b">) =>
  table(rules, Object.fromEntries(Object.entries(owners).map(([name, owner]) => [name, [owner === "a" ? 1 : 2]])));

it("counts the namespaces that each subset gains and loses, and neither births nor deaths", () => {
  const before = owned({ w: "a", x: "a", y: "b", dies: "a" });
  const after = owned({ w: "b", x: "b", y: "a", born: "b" });
  expect(Object.fromEntries(countMoves(before, after))).toEqual({ a: { gained: 1, lost: 2 }, b: { gained: 2, lost: 1 } });
  expect(countMoves(before, owned({ w: "a", x: "a", y: "b", born: "b" })).size).toBe(0);
  expect(countMoves(before, before).size).toBe(0);
});
