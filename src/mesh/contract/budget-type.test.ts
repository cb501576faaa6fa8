import { expect, it } from "vitest";
import { BUDGET, type BudgetShare } from "./budget-type.ts";

const SHARE: BudgetShare = { uid: "uid-1", rule: "deletes", millionths: 250_000 };
const HEAD = { version: 3, digest: "d" };

it("reads what it has written", () => {
  const resource = { ...HEAD, shares: [SHARE, { ...SHARE, rule: "writes", millionths: 0 }] };
  expect(BUDGET.decode(BUDGET.encode(resource), HEAD)).toEqual(resource);
});

it("ignores fields of a newer version", () => {
  const body = Buffer.from(JSON.stringify({ shares: [{ ...SHARE, weight: 2 }], more: [] }));
  expect(BUDGET.decode(body, HEAD)).toEqual({ ...HEAD, shares: [SHARE] });
});

it.each([
  ["no JSON", "{", "body"],
  ["no list", '{"shares":{}}', "shares"],
  ["more than the whole", JSON.stringify({ shares: [{ ...SHARE, millionths: 1_000_001 }] }), "shares.0.millionths"],
  ["no uid", JSON.stringify({ shares: [{ ...SHARE, uid: "" }] }), "shares.0.uid"],
])("refuses %s, and names the field", (_, body, field) => {
  expect(() => BUDGET.decode(Buffer.from(body), HEAD)).toThrow(field);
});

it("has equal digests for equal shares only", () => {
  expect(BUDGET.digest({ shares: [SHARE] })).toBe(BUDGET.digest({ shares: [{ ...SHARE }] }));
  expect(BUDGET.digest({ shares: [SHARE] })).not.toBe(BUDGET.digest({ shares: [{ ...SHARE, millionths: 1 }] }));
});
