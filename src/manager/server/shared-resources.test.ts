import { expect, it } from "vitest";
import { eventually } from "../../../test/support/eventually.ts";
import { collectGarbage } from "../../base/collect-garbage.ts";
import { createWeakIndex, type WeakIndex } from "./shared-resources.ts";

// Not in the test itself: the frame of an async function may keep the values.
function setNew(index: WeakIndex<object>, count: number): WeakRef<object>[] {
  return Array.from({ length: count }, (_, number) => {
    const value = {};
    index.set(`dropped-${number}`, value);
    return new WeakRef(value);
  });
}

it("forgets the values that nobody holds, and their keys from time to time", async () => {
  const index = createWeakIndex<object>();
  const held = {};
  index.set("held", held);
  const dropped = setNew(index, 60);
  await eventually(() => {
    collectGarbage();
    return dropped.every((ref) => ref.deref() === undefined);
  });
  expect([index.get("held"), index.get("dropped-0"), index.size]).toEqual([held, undefined, 61]);
  for (const number of [1, 2, 3]) index.set(`held-${number}`, held);
  expect([index.get("held"), index.get("held-3"), index.size]).toEqual([held, held, 4]);
});
