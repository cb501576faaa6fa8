import { expect, it } from "vitest";
import { remember } from "./remember.ts";

it("computes each result once, even with a second key", () => {
  const asked: string[] = [];
  const pairOf = remember((a: { name: string }) =>
    remember((b: { name: string }) => {
      asked.push(a.name + b.name);
      return { a, b };
    }),
  );
  const [x, y] = [{ name: "x" }, { name: "y" }];
  expect(pairOf(x)(y)).toBe(pairOf(x)(y));
  expect(pairOf(y)(x)).toEqual({ a: y, b: x });
  expect(asked).toEqual(["xy", "yx"]);
});
