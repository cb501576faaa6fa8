import { expect, it } from "vitest";
import { eventually } from "../../test/support/eventually.ts";
import { collectGarbage } from "./collect-garbage.ts";
import { remember, rememberWeakly } from "./remember.ts";

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

it("computes a large result again only when nobody else uses it", async () => {
  let made = 0;
  const largeOf = rememberWeakly((_: object) => ({ number: ++made }));
  const [used, unused] = [{}, {}];
  const result = largeOf(used);
  (() => largeOf(unused))(); // the frame of an async test may keep the result
  await eventually(() => {
    collectGarbage();
    return largeOf(unused).number > 2;
  });
  expect(largeOf(used)).toBe(result);
});
