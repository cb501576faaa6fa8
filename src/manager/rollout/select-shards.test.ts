import { describe, expect, it } from "vitest";
import { selectShards, unknownPartText } from "./select-shards.ts";

const NORMAL = Array.from({ length: 12 }, (_, index) => `foo-${index + 1}-normal`);
const SHARDS = ["foo-0-canary", ...NORMAL, ""];

describe("selectShards", () => {
  it("selects every shard, and the pods of no shard, by an empty value and by all", () => {
    expect(selectShards("", SHARDS)).toEqual({ shards: SHARDS });
    expect(selectShards("all", SHARDS)).toEqual({ shards: SHARDS });
  });
  it("selects the shards whose names contain the value, as KusionStack does, but not the pods of no shard", () => {
    expect(selectShards("canary", SHARDS)).toEqual({ shards: ["foo-0-canary"] });
    expect(selectShards("normal", SHARDS)).toEqual({ shards: NORMAL });
    expect(selectShards("foo-1", SHARDS)).toEqual({ shards: ["foo-1-normal", ...NORMAL.slice(9)] });
  });
  it("selects only the shard with exactly this name, also if other names contain it", () => {
    expect(selectShards("a-normal", ["a-normal", "aa-normal"])).toEqual({ shards: ["a-normal"] });
    expect(selectShards("aa-normal_a-normal", ["a-normal", "aa-normal"])).toEqual({ shards: ["a-normal", "aa-normal"] });
  });
  it("selects by each of several parts, in the order of the shards", () => {
    expect(selectShards("foo-2-normal_canary", SHARDS)).toEqual({ shards: ["foo-0-canary", "foo-2-normal"] });
  });
  it.each([
    ["bar-1-normal", "bar-1-normal"],
    ["canary_norml", "norml"],
    ["canary__normal", ""],
    ["canary_all", "all"],
  ])("selects nothing by %s, one part of which no name contains", (value, unknownPart) => {
    expect(selectShards(value, SHARDS)).toEqual({ unknownPart });
  });
});

it("the message about a part that selects nothing lists the shards", () => {
  expect(unknownPartText("norml", SHARDS)).toBe(
    '"norml" in the label rolling of the StatefulSet selects no shard: set the label to all, or to names of shards or parts of names, such as canary or normal, with "_" between them; the shards are foo-0-canary, foo-1-normal, foo-2-normal, foo-3-normal, foo-4-normal and 8 more',
  );
  expect(unknownPartText("x", ["foo-1-normal", ""])).toMatch(/; the shards are foo-1-normal$/);
});
