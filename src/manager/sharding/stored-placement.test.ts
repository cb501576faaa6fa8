import { expect, it } from "vitest";
import { PLACEMENT } from "../../api/sharding-keys.ts";
import { formatPlacement } from "./placement-annotation.ts";
import { placementInputs, storedPlacement } from "./stored-placement.ts";

const PLACED = { start: 0, shards: 2, active: [1, 2], map: undefined };
const rootWith = (text: string | undefined) => ({ metadata: { annotations: text === undefined ? {} : { [PLACEMENT]: text } } });

it("reads the annotation, and takes one that cannot be read for none", () => {
  const placement = { ...PLACED, away: new Map([[2, 1_000]]) };
  expect(storedPlacement(rootWith(formatPlacement(placement)))).toEqual(placement);
  expect([undefined, "{", "{}"].map((text) => storedPlacement(rootWith(text)))).toEqual([undefined, undefined, undefined]);
});

it("says why an annotation cannot be read", () => {
  const reasons = (text: string | undefined) => {
    const found: string[] = [];
    storedPlacement(rootWith(text), (problems) => found.push(...problems.map(({ path }) => path)));
    return found;
  };
  expect([undefined, formatPlacement({ ...PLACED, away: new Map() }), '{"start":0}'].map((text) => reasons(text).length)).toEqual(
    [0, 0, 3],
  );
});

it("a shard that goes away changes no input of the table; a shard that leaves does", () => {
  const inputs = (active: readonly number[], away: ReadonlyMap<number, number>) =>
    placementInputs(rootWith(formatPlacement({ ...PLACED, active, away })));
  expect(inputs([1, 2], new Map([[2, 1_000]]))).toBe(inputs([1, 2], new Map()));
  expect(inputs([1], new Map())).not.toBe(inputs([1, 2], new Map()));
});
