import { expect, it } from "vitest";
import { ordinalOf } from "./pod-ordinal.ts";

it("the ordinal of a pod is known only of pods of that StatefulSet", () => {
  const ordinals = ["web-0", "web-10", "web-a-1", "web", "web-", "web-01", "web-1x", "other-1", "web-9999999999"];
  expect(ordinals.map((name) => ordinalOf("web", name))).toEqual([0, 10, ...Array(7).fill(undefined)]);
});
