import { expect, test } from "vitest";
import { BoundedMap } from "./bounded-map.ts";

test("above the bound the oldest entry is removed", () => {
  const map = new BoundedMap<string, number>(2);
  map.set("a", 1).set("b", 2).set("c", 3);
  expect([...map]).toEqual([
    ["b", 2],
    ["c", 3],
  ]);
});

test("an entry becomes the newest when it is set, not when it is read", () => {
  const map = new BoundedMap<string, number>(2);
  map.set("a", 1).set("b", 2).set("a", 3);
  expect(map.get("b")).toBe(2);
  map.set("c", 4);
  expect([...map.keys()]).toEqual(["a", "c"]);
});
