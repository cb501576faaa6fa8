import { expect, it } from "vitest";
import { nameList } from "./name-list.ts";

it("shows at most so many names, and the number of the others", () => {
  expect(nameList([], 2)).toBe("");
  expect(nameList(["a", "b"], 2)).toBe("a, b");
  expect(nameList(["a", "b", "c"], 2)).toBe("a, b and 1 more");
});
