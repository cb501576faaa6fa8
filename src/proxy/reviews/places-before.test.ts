import { expect, it } from "vitest";
import { snapshot, subset, table } from "../../../test/support/route-table.ts";
import { enforced } from "../session/enforcer.ts";
import { createPlacesBefore } from "./places-before.ts";

const DEPLOYMENTS = { group: "apps", resource: "deployments" };
const RULES = [subset("canary"), subset("blue")];
const stateOf = (members: Record<string, readonly number[]>, fenced: readonly string[] = []) =>
  enforced(snapshot(table(RULES, members, { fenced }), { subset: "canary" }));

it("remembers the owner from before the fence, as long as the fence lasts", () => {
  const places = createPlacesBefore();
  const owner = (place: string) => places.ownerBefore(DEPLOYMENTS, place);
  const states = [
    stateOf({ a: [1], b: [] }),
    stateOf({ a: [0], b: [] }, ["a"]),
    stateOf({ a: [0], b: [0] }, ["a", "b"]),
    stateOf({ a: [0], b: [0] }, ["b"]),
  ];
  const seen = states.map((now, index) => {
    places.follow(now, states[index - 1]);
    return [owner("a"), owner("b")];
  });
  const [blue, stable] = [
    { kind: "subset", subset: "blue" },
    { kind: "subset", subset: "" },
  ];
  expect(seen).toMatchObject([
    [undefined, undefined],
    [blue, undefined],
    [blue, stable],
    [undefined, stable],
  ]);
});

it("does not know who owned what was fenced from the start", () => {
  const places = createPlacesBefore();
  const first = stateOf({ a: [0] }, ["a"]);
  places.follow(first, undefined);
  places.follow(stateOf({ a: [0] }, ["a"]), first);
  expect(places.ownerBefore(DEPLOYMENTS, "a")).toBeUndefined();
});
