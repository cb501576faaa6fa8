import fc from "fast-check";
import { expect, it } from "vitest";
import { hashOf, readPlace, VIEWS } from "./place.ts";

it("reads back every place that it writes", () => {
  const place = fc.record({ view: fc.constantFrom(...VIEWS), app: fc.string(), find: fc.string({ unit: "grapheme" }) });
  fc.assert(
    fc.property(place, (each) => {
      expect(readPlace(hashOf(each))).toEqual(each);
    }),
  );
});

it("writes what a person can read and type", () => {
  expect(hashOf({ view: "map", app: "ops/shop", find: "team-b" })).toBe("#/map?app=ops/shop&find=team-b");
  expect(hashOf({ view: "waiting", app: "", find: "" })).toBe("#/waiting");
});

it.each(["", "#", "#/", "#/nowhere", "#waiting", "#/waiting?app", "#/__proto__"])("reads %j as the first view", (hash) => {
  expect(readPlace(hash)).toEqual({ view: "waiting", app: "", find: "" });
});
