import { expect, it } from "vitest";
import { subset, table } from "../../../test/support/route-table.ts";
import { compareWith } from "./claims.ts";

class CountingMap extends Map<string, number> {
  asked = 0;
  override get(name: string) {
    this.asked++;
    return super.get(name);
  }
}

function counted(members: Readonly<Record<string, readonly number[]>>) {
  const plain = table([subset("canary"), subset("beta")], members);
  const classOf = new CountingMap(plain.classOf);
  return { ...plain, classOf };
}

const names = Array.from({ length: 500 }, (_, at) => `n${at}`);
const before = () => counted(Object.fromEntries(names.map((name) => [name, []])));
const after = () => counted(Object.fromEntries(names.map((name, at) => [name, at === 7 ? [0] : []])));

it("the namespaces of two tables are read once, for all subsets and plans and for all tables that differ in fences only", () => {
  const [desired, claimed] = [after(), before()];
  expect(compareWith(desired, claimed).conflictsOf("")).toEqual(["n7"]);
  const asked = desired.classOf.asked + claimed.classOf.asked;
  for (const fenced of ["n1", "n2", "n7"]) {
    const table = { ...claimed, fenced: new Set([fenced]) };
    for (let plan = 0; plan < 10; plan++) {
      expect(compareWith(desired, table).conflictsOf("")).toEqual(fenced === "n7" ? [] : ["n7"]);
      for (const each of ["canary", "beta"]) expect(compareWith(desired, table).conflictsOf(each)).toEqual([]);
    }
  }
  expect(desired.classOf.asked + claimed.classOf.asked).toBe(asked);
});

it("a table that differs from the desired one in fences only has no conflicts, and no namespace is read", () => {
  const desired = after();
  const fenced = { ...desired, fenced: new Set(["n7"]) };
  expect(["", "canary"].map((each) => compareWith(desired, fenced).conflictsOf(each))).toEqual([[], []]);
  expect(desired.classOf.asked).toBe(0);
});
